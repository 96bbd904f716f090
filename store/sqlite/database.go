package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/guard"
)

// Database is an open SQLite database.
type Database struct {
	dir string
	// isNew is set if the file was empty.
	isNew  bool
	logger *slog.Logger
	// level is that of the schema which this program makes.
	level int64
	// file is that of the database, and files are it and SQLite's own beside it.
	file    *guard.File
	files   *guard.Files
	writers database.Pool
	readers database.Pool
	// failed is set when a batch could not use the database, until rows are stored again or a probe shows that they can.
	failed atomic.Bool
	// probing has a value while somebody probes whether creates can be stored.
	probing     chan struct{}
	checkpoints checkpointCounts
	// closeOnce is close, whose second call returns what the first did.
	closeOnce func() error
}

var _ database.Database = (*Database)(nil)

// Dir is that of the database, symbolic links resolved.
func (d *Database) Dir() string { return d.dir }

// IsNew reports whether Create has created the database, in a file that was missing or empty.
func (d *Database) IsNew() bool { return d.isNew }

// IsShared tells that there is one server on the files.
func (d *Database) IsShared() bool { return false }

// Reader returns a handle whose connections cannot write.
func (d *Database) Reader() *gorm.DB { return d.readers.GORM }

// Change runs statements in one durable transaction between two looks at the files. SQLite runs them once.
func (d *Database) Change(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := d.files.Check(); err != nil {
		return err
	}
	tx := d.writers.GORM.WithContext(ctx).Begin()
	if tx.Error != nil {
		return fmt.Errorf("begin: %w", tx.Error)
	}
	// Without a commit, because of an error or a panic, the transaction would stay open and keep out all others.
	defer func() { _ = tx.Rollback() }()
	if err := d.checkSupport(tx); err != nil {
		return err
	}
	if err := raiseGeneration(d.files, tx); err != nil {
		return err
	}
	if err := statements(tx); err != nil {
		return err
	}
	if err := commitError(tx.Commit().Error); err != nil {
		return err
	}
	if err := d.files.Check(); err != nil {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	return nil
}

// ChangeAlone is Change: only one transaction writes at a time.
func (d *Database) ChangeAlone(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Change(ctx, statements)
}

// Check reads from the database or, if a batch could not use it, writes to it.
func (d *Database) Check(ctx context.Context) error {
	if err := d.files.Check(); err != nil {
		return err
	}
	if d.failed.Load() {
		return d.probeWrite(ctx)
	}
	reader := d.Reader().WithContext(ctx)
	if err := d.checkSupport(reader); err != nil {
		return err
	}
	var pks []int32
	if err := reader.Raw("SELECT pk FROM providers LIMIT 1").Scan(&pks).Error; err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// Close waits for running statements and releases the database.
//
// It returns database.ErrUnavailable where the files are no longer those that were opened. It does not release them
// then, as if the process had been killed: SQLite would copy the WAL into whatever is in the database's place, and
// remove it. A second call returns what the first did.
func (d *Database) Close() error {
	if err := d.closeOnce(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

func (d *Database) close() error {
	if d.files != nil {
		if err := d.files.Check(); err != nil {
			return err
		}
	}
	err := database.ClosePools(d.readers, d.writers)
	// The files go last: closed earlier, they would take the locks of SQLite with them.
	if d.files != nil {
		err = errors.Join(err, d.files.Close())
	}
	if d.file != nil {
		err = errors.Join(err, d.file.Close())
	}
	return err
}
