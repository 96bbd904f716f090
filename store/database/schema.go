package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// ProgramVersion returns the version of the last embedded migration. These have names such as
// migrations/00001_schema.sql; it fails for names of another form.
func ProgramVersion(embedded fs.FS) (newest int64, err error) {
	names, err := fs.Glob(embedded, "migrations/*.sql")
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("read migration %s: %w", name, err)
		}
		newest = max(newest, version)
	}
	return newest, nil
}

// MigrateUp applies the pending migrations, and reports whether there were any.
func MigrateUp(
	ctx context.Context, dialect goose.Dialect, db *sql.DB, embedded fs.FS, options ...goose.ProviderOption,
) (isDone bool, err error) {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	provider, err := goose.NewProvider(dialect, db, files, append(options, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	steps, err := provider.Up(ctx)
	return len(steps) > 0, err //nolint:wrapcheck // The caller names the database.
}

// Schema is the schema version of a database, and that of this program.
type Schema struct {
	// Version is the version of the last migration applied to the database, or 0 if there is none.
	Version int64
	// MinProgram is the lowest Program that can use the database, or 0 if the database has no migrations.
	MinProgram int64
	// Program is the version of the last migration that this program knows.
	Program int64
}

// Check returns ErrOlder or ErrNewer if this program cannot use the database as it is.
func (s Schema) Check() error {
	if err := s.CheckKnown(); err != nil {
		return err
	}
	if s.Version < s.Program {
		return fmt.Errorf("%w: its schema version is %d but this program needs %d", ErrOlder, s.Version, s.Program)
	}
	return nil
}

// CheckKnown is Check, but accepts older versions, unless the creation of the database was interrupted.
func (s Schema) CheckKnown() error {
	switch {
	case s.Version == 0:
		return fmt.Errorf("%w: its creation was interrupted", ErrOlder)
	case s.MinProgram > s.Program:
		return fmt.Errorf("%w: its schema version %d requires a program that supports version %d; this one supports up to %d",
			ErrNewer, s.Version, s.MinProgram, s.Program)
	default:
		return nil
	}
}

// SchemaError returns ErrUnavailable if a schema has faults.
func SchemaError(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the schema differs from what this program creates: %s; undo what another program has changed",
		ErrUnavailable, strings.Join(faults, ", "))
}

// preparedInterval is how long Prepared trusts a call.
const preparedInterval = time.Minute

// Prepared remembers when Prepare last succeeded, because it reads more than a check of readiness should.
type Prepared struct {
	mutex sync.Mutex
	at    time.Time
}

// Renew calls prepare unless it succeeded within the last minute, and returns its error.
func (p *Prepared) Renew(prepare func() error) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < preparedInterval {
		return nil
	}
	err := prepare()
	if err == nil {
		p.at = time.Now()
	}
	return err
}

// Forget makes Renew call prepare again.
func (p *Prepared) Forget() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.at = time.Time{}
}

// Pool is a connection pool with its GORM handle. The zero value is a pool that was never opened.
type Pool struct {
	*sql.DB
	// GORM uses the connections of DB.
	GORM *gorm.DB
}

// Reader returns the GORM handle, as Readable.
func (p Pool) Reader() *gorm.DB { return p.GORM }

// ClosePools closes the pools that were opened, and waits for their running statements.
func ClosePools(pools ...Pool) error {
	var errs []error
	for _, pool := range pools {
		if pool.DB != nil {
			errs = append(errs, Wrap("close connections", pool.Close()))
		}
	}
	return errors.Join(errs...)
}

// OpenGORM returns a GORM handle for the connections of a dialector. Its errors come from the driver, translated by
// the dialector and then by classify. Only drivers keep prepared statements: GORM's wait, under one lock, for
// connections that belong to transactions, which wait for it.
func OpenGORM(dialector gorm.Dialector, classify func(error) error) (*gorm.DB, error) {
	db, err := gorm.Open(translator{dialector, classify}, &gorm.Config{
		// A log of statements would contain their values.
		Logger: logger.Discard, SkipDefaultTransaction: true, TranslateError: true, DisableAutomaticPing: true,
	})
	return db, Wrap("open database", classify(err))
}

// translator is a dialector that translates errors into errors of this package.
type translator struct {
	gorm.Dialector
	classify func(error) error
}

// Translate implements gorm.ErrorTranslator.
func (t translator) Translate(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return ErrNotFound
	}
	if inner, ok := t.Dialector.(gorm.ErrorTranslator); ok {
		err = inner.Translate(err)
	}
	return t.classify(err)
}

// Initialize also makes GORM translate the errors of Raw and Rows, which it does not by itself.
func (t translator) Initialize(db *gorm.DB) error {
	err := t.Dialector.Initialize(db)
	if err == nil {
		err = db.Callback().Row().After("gorm:row").Register("providerd:translate", func(db *gorm.DB) {
			db.Error = t.Translate(db.Error)
		})
	}
	return Wrap("initialize GORM", err)
}
