// Package postgres keeps providers in a PostgreSQL database, which any number of replicas share.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const (
	// maxReaders bounds the connections that read.
	maxReaders = 8
	// maxWriters bounds the connections that change something: those of the batches, of other changes, and of commits that
	// nobody waits for any more.
	maxWriters = 16
)

// Create opens the database of a URL and brings its schema to the level of this program. Programs that do so at a time
// take turns. The logger gets what goes wrong beside the statements of callers.
//
// It returns database.ErrNewer, ErrForeign, ErrUnsafe or ErrUnavailable.
func Create(ctx context.Context, url URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, migrate)
}

// Open opens the database of a URL as it is. The logger gets what goes wrong beside the statements of callers.
//
// It returns database.ErrNone, ErrOlder, ErrNewer, ErrForeign, ErrUnsafe or ErrUnavailable.
func Open(ctx context.Context, url URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, checkLevel)
}

// preparation brings a database to the level of this program, or refuses it.
type preparation func(ctx context.Context, db *sql.DB) error

func open(ctx context.Context, url URL, logger *slog.Logger, prepare preparation) (*Database, error) {
	opened := &Database{logger: logger, avoided: &avoidance{}}
	err := opened.open(ctx, url.config, prepare)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

func (d *Database) open(ctx context.Context, config *pgx.ConnConfig, prepare preparation) (err error) {
	if d.writers, err = d.connect(config, maxWriters); err != nil {
		return err
	}
	pool, err := d.writers.DB()
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	// What the server refuses for good is told at once; a server that is away may come back, but not for a program that
	// has not begun.
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	if err := prepare(ctx, pool); err != nil {
		return err
	}
	d.readers, err = d.connect(config, maxReaders)
	return err
}

// connect opens a pool, each connection of which is checked when it is made.
func (d *Database) connect(config *pgx.ConnConfig, connections int) (*gorm.DB, error) {
	pool := stdlib.OpenDB(*config,
		stdlib.OptionBeforeConnect(func(_ context.Context, config *pgx.ConnConfig) error {
			if len(hostsOf(config)) > 1 {
				config.DialFunc = d.avoided.wrap(config.DialFunc)
			}
			config.OnNotice = keepWarning
			return nil
		}),
		stdlib.OptionAfterConnect(prepareConnection))
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	db, err := gorm.Open(dialector{gormpostgres.Dialector{Config: &gormpostgres.Config{Conn: pool}}}, &gorm.Config{
		// A log of statements would have their values.
		Logger: logger.Discard, SkipDefaultTransaction: true, TranslateError: true, DisableAutomaticPing: true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), pool.Close())
	}
	return db, nil
}
