package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/link"
)

// View is a PostgreSQL database opened for inspection.
type View struct {
	pool database.Pool
}

var _ database.View = (*View)(nil)

// OpenReadOnly opens a database for reading, regardless of its server's settings. It returns database.ErrUnavailable.
func OpenReadOnly(ctx context.Context, url link.URL) (*View, error) {
	accept := func(context.Context, *pgx.Conn) error { return nil }
	view := &View{pool: database.Pool{DB: new(link.Servers).Open(url, 1, accept)}}
	err := database.Wrap("connect to the database", unavailable(view.pool.PingContext(ctx)))
	if err == nil {
		view.pool.GORM, err = openGORM(view.pool.DB)
	}
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return view, nil
}

// Reader returns a handle to the only connection.
func (v *View) Reader() *gorm.DB { return v.pool.GORM }

// Schema returns the schema version of the database and the migrations that this program knows.
func (v *View) Schema(ctx context.Context) (database.Schema, error) {
	return readCopied(ctx, v.pool.DB)
}

// Check reports whether Prepare has sequences to move, and returns its errors.
func (v *View) Check(ctx context.Context) (isBehind bool, err error) {
	behind, err := check(v.Reader().WithContext(ctx))
	return len(behind) > 0, err
}

// Faults returns the reasons why Create and Open refuse the server, each a database.ErrUnsafe or ErrUnavailable that
// says what to do. It returns database.ErrUnavailable if the settings cannot be read.
func (v *View) Faults(ctx context.Context) (faults []error, err error) {
	conn, native, err := connect(ctx, v.pool.DB)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return readRefusals(ctx, native)
}

// Safeguards describes how the database is protected against the loss of its server, and what else limits replicas.
type Safeguards struct {
	// Standbys is the setting synchronous_standby_names; "" if there are none.
	Standbys string
	// Archiving is the setting archive_mode. HasArchive reports whether an archive command or library is set.
	Archiving  string
	HasArchive bool
	// IsArchiveFailing reports whether the last attempt to archive a WAL file failed.
	IsArchiveFailing bool
	// MaxConnections is how many connections the role may have; each replica opens up to MaxConnectionsPerReplica.
	MaxConnections int
	// AgingDatabase is the database whose transaction ids run out first, if autovacuum is far behind; "" if none.
	AgingDatabase string
}

// MaxConnectionsPerReplica is the most connections that a replica opens.
const MaxConnectionsPerReplica = maxReaders + maxWriters

const selectSafeguards = `SELECT current_setting('synchronous_standby_names') AS standbys,
	current_setting('archive_mode') AS archiving, current_setting('archive_command') NOT IN ('', '(disabled)')
		OR current_setting('archive_library') <> '' AS has_archive,
	(SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) FROM pg_stat_archiver)
		AS is_archive_failing,
	(SELECT least(current_setting('max_connections')::integer -
			CASE WHEN rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::integer +
			coalesce(current_setting('reserved_connections', true)::integer, 0) END,
		CASE WHEN NOT rolsuper THEN nullif(rolconnlimit, -1) END,
		CASE WHEN NOT rolsuper THEN nullif(datconnlimit, -1) END)
		FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database())
		AS max_connections,
	coalesce((SELECT datname FROM pg_database
		WHERE age(datfrozenxid) > least(2 * current_setting('autovacuum_freeze_max_age')::bigint, 1500000000)
		ORDER BY age(datfrozenxid) DESC LIMIT 1), '') AS aging_database`

// Safeguards reads the settings of the server. It returns database.ErrUnavailable if that fails.
func (v *View) Safeguards(ctx context.Context) (safeguards Safeguards, err error) {
	err = v.Reader().WithContext(ctx).Raw(selectSafeguards).Scan(&safeguards).Error
	return safeguards, database.Wrap("read the settings of the database", unavailable(err))
}

// Close closes the connection.
func (v *View) Close() error { return database.ClosePools(v.pool) }
