// Package postgres keeps providers in a PostgreSQL database, which any number of replicas share. It has what is
// PostgreSQL's alone: connections, failover, transactions whose outcome may be unknown, readiness and migrations. What
// a create is it does not know; that is in store.
//
// Start with Create, then read batches.go, begin.go and transaction.go in the order of a commit. README.md shows what
// failovers come to.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// maxReaders bounds the connections that read.
	maxReaders = 8
	// maxWriters bounds the connections that change something: those of the batches, of other changes, and of commits that
	// nobody waits for any more.
	maxWriters = 16
	// maxIdleTime is how long a connection is kept that nobody uses, and that other replicas may lack.
	maxIdleTime = 10 * time.Second
)

// Create opens the database of a URL and brings its schema to the level of this program. Programs that do so at a time
// take turns. Other programs may have tables in the database, but none with the name of one of providerd's. The logger
// gets what goes wrong beside the statements of callers.
//
// It returns database.ErrNewer, ErrForeign, ErrUnsafe or ErrUnavailable.
func Create(ctx context.Context, url URL, logger *slog.Logger) (*Database, error) {
	opened, err := open(ctx, url, logger, migrator(logger))
	if err != nil {
		return nil, err
	}
	opened.warnWithoutStandby(ctx)
	return opened, nil
}

// warnWithoutStandby says so if a failover would lose what was acknowledged.
func (d *Database) warnWithoutStandby(ctx context.Context) {
	var standbys string
	err := d.readers.GORM.WithContext(ctx).Raw("SELECT current_setting('synchronous_standby_names')").Scan(&standbys).Error
	if err == nil && standbys == "" {
		d.logger.Warn("there is no synchronous standby: a failover loses what no standby has received; name one in " +
			"synchronous_standby_names")
	}
}

// Open opens the database of a URL as it is. The logger gets what goes wrong beside the statements of callers.
//
// It returns database.ErrNoDatabase, ErrOlder, ErrNewer, ErrForeign, ErrUnsafe or ErrUnavailable.
func Open(ctx context.Context, url URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, checkSchema)
}

// preparation brings a database to the level of this program, or refuses it.
type preparation func(ctx context.Context, db *sql.DB) error

func open(ctx context.Context, url URL, logger *slog.Logger, prepare preparation) (*Database, error) {
	opened := &Database{logger: logger, servers: newServers(url.hasTimeout), abandonTimeout: abandonTimeout}
	opened.close = sync.OnceValue(func() error { return database.ClosePools(opened.readers, opened.writers) })
	err := opened.open(ctx, url.config, prepare)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

func (d *Database) open(ctx context.Context, config *pgx.ConnConfig, prepare preparation) (err error) {
	d.writers.DB = d.connect(config, maxWriters, false)
	if d.writers.GORM, err = openGORM(d.writers.DB); err != nil {
		return err
	}
	if err := d.ping(ctx, d.writers.DB); err != nil {
		return fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	if err := prepare(ctx, d.writers.DB); err != nil {
		return err
	}
	d.readers.DB = d.connect(config, maxReaders, true)
	d.readers.GORM, err = openGORM(readPool{DB: d.readers.DB, database: d})
	return err
}

// ping connects, and tries again if a server is only busy. What a server refuses for good is returned at once; one that
// is away may recover, but not for a program that has not begun.
func (d *Database) ping(ctx context.Context, pool *sql.DB) error {
	retries, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	return retry(retries, func() (again bool, err error) {
		err = pool.PingContext(ctx)
		isBusy := errors.Is(err, errSilent) || errors.Is(err, errSkipped) || isOutOfConnections(err)
		if isBusy {
			d.servers.forget(err)
		}
		return isBusy, err //nolint:wrapcheck // The caller wraps it.
	})
}

// connect opens a pool, each connection of which is guided to its server, and checked when it is made.
func (d *Database) connect(config *pgx.ConnConfig, connections int, onlyRead bool) *sql.DB {
	pool := stdlib.OpenDB(*config,
		stdlib.OptionBeforeConnect(func(_ context.Context, config *pgx.ConnConfig) error {
			d.servers.configure(config, onlyRead)
			config.OnNotice = keepNotice
			return nil
		}),
		stdlib.OptionAfterConnect(prepareConnection),
		stdlib.OptionResetSession(d.servers.checkConn),
		// A server that is frozen takes for ever to answer one.
		stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(maxIdleTime)
	return pool
}

// openGORM lets GORM use a pool.
func openGORM(pool gorm.ConnPool) (*gorm.DB, error) {
	return database.OpenGORM(gormpostgres.Dialector{Config: &gormpostgres.Config{Conn: pool}}, classify, false)
}
