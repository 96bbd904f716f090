package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// View is a PostgreSQL database that is only looked at.
type View struct {
	pool database.Pool
}

var _ database.View = (*View)(nil)

// OpenReadOnly opens the database of a URL for reading, whatever the settings of its server. It returns
// database.ErrUnavailable.
func OpenReadOnly(ctx context.Context, url URL) (*View, error) {
	connections := stdlib.OpenDB(*url.config, stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
		readTimesInUTC(conn)
		return nil
	}))
	connections.SetMaxOpenConns(1)
	view := &View{pool: database.Pool{DB: connections}}
	if err := connections.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the database: %w", unavailable(err)), view.Close())
	}
	var err error
	if view.pool.GORM, err = openGORM(connections); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return view, nil
}

// Reader returns a handle over one connection.
func (v *View) Reader() *gorm.DB { return v.pool.GORM }

// Schema tells how far the database was migrated.
func (v *View) Schema(ctx context.Context) (database.Schema, error) {
	return readSchema(ctx, v.pool.DB)
}

// Faults are why Create and Open refuse the server: none, or each a database.ErrUnsafe or ErrUnavailable that says what
// to do. It fails with database.ErrUnavailable.
func (v *View) Faults(ctx context.Context) (faults []error, err error) {
	conn, err := v.pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var read settings
	err = raw(conn, func(conn *pgx.Conn) error {
		read, err = readSettings(ctx, conn)
		return err
	})
	if err != nil {
		return nil, err
	}
	return read.faults(), nil
}

// Safeguards is what is done so that the database outlives its server.
type Safeguards struct {
	// Standbys names the synchronous ones, as the setting synchronous_standby_names does; "" for none.
	Standbys string
	// Archiving is the setting archive_mode, and HasArchive tells that there is a command or a library that archives.
	Archiving  string
	HasArchive bool
	// IsArchiveFailing tells that the last file was tried in vain.
	IsArchiveFailing bool
	// Time is that of the server.
	Time time.Time
	// MaxConnections is how many the role of the URL may have at a time, and each replica up to MaxConnectionsPerReplica.
	MaxConnections int
	// Language and MinMessages are the settings lc_messages and client_min_messages, which must not matter to creates.
	Language, MinMessages string
}

// MaxConnectionsPerReplica is how many connections a replica opens at most.
const MaxConnectionsPerReplica = maxReaders + maxWriters

const selectSafeguards = `SELECT current_setting('synchronous_standby_names'), current_setting('archive_mode'),
	current_setting('archive_command') NOT IN ('', '(disabled)') OR current_setting('archive_library') <> '',
	(SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) FROM pg_stat_archiver),
	clock_timestamp(), current_setting('lc_messages'), current_setting('client_min_messages'),
	(SELECT least(current_setting('max_connections')::integer -
			CASE WHEN rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::integer +
			coalesce(current_setting('reserved_connections', true)::integer, 0) END,
		nullif(rolconnlimit, -1), nullif(datconnlimit, -1))
		FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database())`

// Safeguards returns database.ErrUnavailable.
func (v *View) Safeguards(ctx context.Context) (safeguards Safeguards, err error) {
	err = v.pool.QueryRowContext(ctx, selectSafeguards).
		Scan(&safeguards.Standbys, &safeguards.Archiving, &safeguards.HasArchive, &safeguards.IsArchiveFailing, &safeguards.Time,
			&safeguards.Language, &safeguards.MinMessages, &safeguards.MaxConnections)
	if err != nil {
		return Safeguards{}, fmt.Errorf("read the settings of the database: %w", unavailable(err))
	}
	return safeguards, nil
}

// Close releases the database.
func (v *View) Close() error { return database.ClosePools(v.pool) }
