// Package postgres stores providers in a PostgreSQL database that any number of replicas share. It handles what is
// specific to PostgreSQL: transactions, commits with an unknown outcome, readiness and migrations. Package link finds
// the server and watches the connections. Creates themselves are in package store.
//
// Start with Create, then insert.go and transaction.go, which follow a create. README.md has measurements of failovers.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"

	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/link"
)

const (
	// maxReaders limits the connections for reading.
	maxReaders = 8
	// maxWriters limits the connections for writing: creates, other changes, and commits that no caller waits for anymore.
	maxWriters = 16
)

// Create opens the database of a URL for a server and migrates it to the schema version of this program. Programs that
// migrate at the same time take turns. Other programs may have tables in the database, but not under the names of
// providerd's. Errors outside of callers' statements go to logger.
//
// It returns database.ErrNewer, ErrForeign, ErrUnsafe or ErrUnavailable.
func Create(ctx context.Context, url link.URL, logger *slog.Logger) (*Database, error) {
	opened, err := open(ctx, url.ForServer(), logger, migrate)
	if err != nil {
		return nil, err
	}
	var standbys string
	err = opened.Reader().WithContext(ctx).Raw("SELECT current_setting('synchronous_standby_names')").Scan(&standbys).Error
	if err == nil && standbys == "" {
		logger.Warn("no synchronous standby: a failover loses commits that no standby has received; " +
			"set synchronous_standby_names")
	}
	return opened, nil
}

// Open opens the database of a URL without migrating it. Errors outside of callers' statements go to logger.
//
// It returns database.ErrNoDatabase, ErrOlder, ErrNewer, ErrForeign, ErrUnsafe or ErrUnavailable.
func Open(ctx context.Context, url link.URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, checkSchema)
}

// CreateAlone is Create, but returns ErrForeign for a database that has tables, but not providerd's.
func CreateAlone(ctx context.Context, url link.URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, migrateAlone)
}

// Migrate migrates the database of a URL as Create does, and returns the errors of Create.
func Migrate(ctx context.Context, url link.URL, logger *slog.Logger) error {
	opened, err := open(ctx, url, logger, migrate)
	if err != nil {
		return err
	}
	return opened.Close()
}

// prepareFunc migrates or checks the schema of a database.
type prepareFunc func(ctx context.Context, db *sql.DB, logger *slog.Logger) error

func open(ctx context.Context, url link.URL, logger *slog.Logger, prepare prepareFunc) (*Database, error) {
	opened := &Database{logger: logger, abandonTimeout: abandonTimeout}
	if err := opened.open(ctx, url, prepare); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

func (d *Database) open(ctx context.Context, url link.URL, prepare prepareFunc) (err error) {
	if d.schemaVersion, err = SchemaVersion(); err != nil {
		return err
	}
	d.writers.DB = d.servers.Open(url, maxWriters, prepareConnection)
	if d.writers.GORM, err = openGORM(d.writers.DB); err != nil {
		return err
	}
	retries, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	// Only a busy server is waited for; a program that is just starting does not wait until another one recovers.
	err = retry(retries, func() (isBusy bool, _ error) {
		// A pooler that permits no transactions says so only here.
		tx, err := d.writers.BeginTx(ctx, nil)
		if err == nil {
			err = tx.Rollback()
		}
		isBusy = errors.Is(err, os.ErrDeadlineExceeded) || hasCode(err, tooManyConnections)
		return isBusy, err //nolint:wrapcheck // It is wrapped below.
	})
	if err != nil {
		return fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	if err := prepare(ctx, d.writers.DB, d.logger); err != nil {
		return err
	}
	if d.columns, err = readColumnTypes(ctx, d.writers.GORM); err != nil {
		return err
	}
	d.readers.DB = d.servers.Open(url, maxReaders, prepareConnection)
	d.readers.GORM, err = openGORM(readPool{DB: d.readers.DB, database: d})
	return err
}

func openGORM(pool gorm.ConnPool) (*gorm.DB, error) {
	return database.OpenGORM(gormpostgres.Dialector{Config: &gormpostgres.Config{Conn: pool}}, classify)
}
