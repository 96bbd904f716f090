// Package postgres stores providers in a PostgreSQL database that any number of replicas share. It handles what is
// specific to PostgreSQL: connections, failover, commits with an unknown outcome, readiness and migrations. Creates
// themselves are in package store.
//
// Start with Create, then read insert.go and transaction.go, which follow a create. README.md has
// measurements of failovers.
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
	opened, err := open(ctx, url.ForServer(), logger, migrator(logger))
	if err != nil {
		return nil, err
	}
	opened.warnWithoutStandby(ctx)
	return opened, nil
}

// warnWithoutStandby logs a warning if a failover could lose acknowledged creates.
func (d *Database) warnWithoutStandby(ctx context.Context) {
	var standbys string
	err := d.readers.GORM.WithContext(ctx).Raw("SELECT current_setting('synchronous_standby_names')").Scan(&standbys).Error
	if err == nil && standbys == "" {
		d.logger.Warn("no synchronous standby: a failover loses commits that no standby has received; " +
			"set synchronous_standby_names")
	}
}

// Open opens the database of a URL without migrating it. Errors outside of callers' statements go to logger.
//
// It returns database.ErrNoDatabase, ErrOlder, ErrNewer, ErrForeign, ErrUnsafe or ErrUnavailable.
func Open(ctx context.Context, url link.URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, checkSchema)
}

// CreateAlone is Create, except that it also returns ErrForeign if a database without providerd's tables has any other
// table.
func CreateAlone(ctx context.Context, url link.URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, func(ctx context.Context, db *sql.DB) error {
		_, err := readSchema(ctx, db)
		if errors.Is(err, database.ErrNoDatabase) {
			err = checkTables(ctx, db, nil)
		}
		if err != nil {
			return err
		}
		return migrator(logger)(ctx, db)
	})
}

// Migrate migrates the database of a URL to the schema version of this program, as Create does, and returns the errors
// of Create.
func Migrate(ctx context.Context, url link.URL, logger *slog.Logger) error {
	opened, err := open(ctx, url, logger, migrator(logger))
	if err != nil {
		return err
	}
	return opened.Close()
}

func open(ctx context.Context, url link.URL, logger *slog.Logger, prepare prepareFunc) (*Database, error) {
	version, err := SchemaVersion()
	if err != nil {
		return nil, err
	}
	opened := &Database{
		logger: logger, schemaVersion: version, abandonTimeout: abandonTimeout,
	}
	err = opened.open(ctx, url, prepare)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

func (d *Database) open(ctx context.Context, url link.URL, prepare prepareFunc) (err error) {
	d.writers.DB = d.servers.Open(url, maxWriters, prepareConnection)
	if d.writers.GORM, err = openGORM(d.writers.DB); err != nil {
		return err
	}
	if err := d.ping(ctx, d.writers.DB); err != nil {
		return fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	if err := prepare(ctx, d.writers.DB); err != nil {
		return err
	}
	if d.columns, err = readColumnTypes(ctx, d.writers.GORM); err != nil {
		return err
	}
	d.readers.DB = d.servers.Open(url, maxReaders, prepareConnection)
	d.readers.GORM, err = openGORM(readPool{DB: d.readers.DB, database: d})
	return err
}

// ping connects, and retries while the servers are only busy. It returns any other error immediately: a program that is
// just starting does not wait for a server to recover.
func (d *Database) ping(ctx context.Context, pool *sql.DB) error {
	retries, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	return retry(retries, func() (isBusy bool, err error) {
		err = pool.PingContext(ctx)
		isBusy = errors.Is(err, os.ErrDeadlineExceeded) || hasCode(err, tooManyConnections)
		return isBusy, err //nolint:wrapcheck // The caller wraps it.
	})
}

func openGORM(pool gorm.ConnPool) (*gorm.DB, error) {
	return database.OpenGORM(gormpostgres.Dialector{Config: &gormpostgres.Config{Conn: pool}}, classify)
}
