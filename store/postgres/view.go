package postgres

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// View is a PostgreSQL database opened for inspection.
type View struct {
	pool database.Pool
}

var _ database.View = (*View)(nil)

// OpenReadOnly opens the database of a URL for reading, regardless of its server's settings. It returns
// database.ErrUnavailable.
func OpenReadOnly(ctx context.Context, url URL) (*View, error) {
	servers := servers{ranks: map[string]int{}}
	connections := stdlib.OpenDB(*url.config, servers.configures(url), stdlib.OptionAfterConnect(readTimesInUTC))
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

// Reader returns a handle to the only connection.
func (v *View) Reader() *gorm.DB { return v.pool.GORM }

// Schema returns the schema version of the database and the migrations that this program knows.
func (v *View) Schema(ctx context.Context) (database.Schema, error) {
	return readSchema(ctx, v.pool.DB)
}

// Faults returns the reasons why Create and Open refuse the server, each a database.ErrUnsafe or ErrUnavailable that
// says what to do. It returns database.ErrUnavailable if the settings cannot be read.
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

// Safeguards describes how the database is protected against the loss of its server, and what else limits replicas.
type Safeguards struct {
	// Standbys is the setting synchronous_standby_names; "" if there are none.
	Standbys string
	// Archiving is the setting archive_mode. HasArchive reports whether an archive command or library is set.
	Archiving  string
	HasArchive bool
	// IsArchiveFailing reports whether the last attempt to archive a WAL file failed.
	IsArchiveFailing bool
	// MaxConnections is how many connections the role of the URL may have at a time. Each replica opens up to
	// MaxConnectionsPerReplica.
	MaxConnections int
	// AgingDatabase is the database of the server whose transaction ids run out first, if autovacuum is far behind; "" if
	// there is none.
	AgingDatabase string
}

// MaxConnectionsPerReplica is the most connections that a replica opens.
const MaxConnectionsPerReplica = maxReaders + maxWriters

const selectSafeguards = `SELECT current_setting('synchronous_standby_names'), current_setting('archive_mode'),
	current_setting('archive_command') NOT IN ('', '(disabled)') OR current_setting('archive_library') <> '',
	(SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) FROM pg_stat_archiver),
	(SELECT least(current_setting('max_connections')::integer -
			CASE WHEN rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::integer +
			coalesce(current_setting('reserved_connections', true)::integer, 0) END,
		nullif(rolconnlimit, -1), nullif(datconnlimit, -1))
		FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()),
	coalesce((SELECT datname FROM pg_database
		WHERE age(datfrozenxid) > least(2 * current_setting('autovacuum_freeze_max_age')::bigint, 1500000000)
		ORDER BY age(datfrozenxid) DESC LIMIT 1), '')`

// Safeguards reads the settings of the server. It returns database.ErrUnavailable if that fails.
func (v *View) Safeguards(ctx context.Context) (safeguards Safeguards, err error) {
	err = v.pool.QueryRowContext(ctx, selectSafeguards).
		Scan(&safeguards.Standbys, &safeguards.Archiving, &safeguards.HasArchive, &safeguards.IsArchiveFailing,
			&safeguards.MaxConnections, &safeguards.AgingDatabase)
	if err != nil {
		return Safeguards{}, fmt.Errorf("read the settings of the database: %w", unavailable(err))
	}
	return safeguards, nil
}

// Close closes the connection.
func (v *View) Close() error { return database.ClosePools(v.pool) }

// catalog is the result of selectObjects for an unmodified schema. Each line has a name, a tab and a definition.
//
//go:embed catalog.txt
var catalog string

// selectObjects selects the objects that affect the rows of tables, wherever these are on the search path, and the
// expected objects. It removes parentheses and casts from expressions, because server versions write them differently.
// It ignores not-null constraints, which exist only since version 18. Before it has any table, it sets what changes how
// the server writes types and expressions, until the statement ends.
const selectObjects = `WITH spelling AS MATERIALIZED (
		SELECT set_config('quote_all_identifiers', 'off', true), set_config('timezone', 'UTC', true)
	), tables AS MATERIALIZED (
		SELECT pg_class.* FROM pg_class, spelling
		WHERE oid IN (SELECT to_regclass(name) FROM string_to_table(@tables, E'\n') AS name)
	), objects (name, definition, decides) AS (
		SELECT format('table "%s"', t.relname), concat_ws(' ', t.relkind, t.relpersistence,
				CASE WHEN t.relrowsecurity THEN 'row security' END,
				CASE WHEN EXISTS (SELECT FROM pg_inherits h WHERE t.oid IN (h.inhparent, h.inhrelid)) THEN 'inherited' END,
				CASE WHEN EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.oid AND g.tgisinternal AND g.tgenabled <> 'O')
					THEN 'triggers disabled' END), true
			FROM tables t
		UNION ALL SELECT format('column "%s"."%s"', t.relname, a.attname),
				concat_ws(' ', format_type(a.atttypid, a.atttypmod),
				CASE WHEN a.attnotnull THEN 'not null' END, CASE WHEN a.atthasdef THEN 'default' END,
				nullif(format('identity %s', a.attidentity), 'identity '),
				nullif(format('generated %s', a.attgenerated), 'generated '),
				CASE WHEN c.collname <> 'default' THEN 'collate ' || c.collname END), true
			FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid LEFT JOIN pg_collation c ON c.oid = a.attcollation
			WHERE a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT format('sequence "%s"', c.relname), concat_ws(' ', t.relname, format_type(s.seqtypid, NULL),
				s.seqincrement, s.seqmin, s.seqmax, CASE WHEN s.seqcycle THEN 'cycle' END), true
			FROM tables t JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid
			JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid JOIN pg_sequence s ON s.seqrelid = c.oid
		UNION ALL SELECT format('constraint "%s" of "%s"', c.conname, t.relname), concat_ws(' ', c.contype,
				CASE WHEN c.condeferrable THEN 'deferrable' END, CASE WHEN NOT c.convalidated THEN 'not validated' END,
				(SELECT string_agg(a.attname, ', ' ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY AS k(number, place)
					JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number),
				f.relname, (SELECT string_agg(a.attname, ', ' ORDER BY k.place)
					FROM unnest(c.confkey) WITH ORDINALITY AS k(number, place)
					JOIN pg_attribute a ON a.attrelid = f.oid AND a.attnum = k.number),
				CASE WHEN f.oid IS NOT NULL THEN format('update %s delete %s', c.confupdtype, c.confdeltype) END,
				regexp_replace(pg_get_expr(c.conbin, t.oid), '[() ]|::text', '', 'g')), true
			FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid LEFT JOIN pg_class f ON f.oid = c.confrelid
			WHERE c.contype <> 'n'
		UNION ALL SELECT format('index "%s"', c.relname), concat_ws(' ', CASE WHEN i.indisunique THEN 'unique' END, t.relname,
				CASE WHEN NOT i.indisvalid THEN 'invalid' END, CASE WHEN NOT i.indimmediate THEN 'deferred' END,
				CASE WHEN to_jsonb(i) ->> 'indnullsnotdistinct' = 'true' THEN 'nulls not distinct' END,
				(SELECT string_agg(coalesce(a.attname, 'expression'), ', ' ORDER BY k.place)
					FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place)
					LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number
					WHERE k.place <= i.indnkeyatts),
				'where ' || regexp_replace(pg_get_expr(i.indpred, t.oid), '[() ]|::text', '', 'g')),
				i.indisunique AND i.indisvalid
			FROM tables t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class c ON c.oid = i.indexrelid
		UNION ALL SELECT format('trigger "%s" of "%s"', g.tgname, t.relname), 'enabled ' || g.tgenabled::text, true
			FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
		UNION ALL SELECT format('rule "%s" of "%s"', r.rulename, t.relname), '', true
			FROM tables t JOIN pg_rewrite r ON r.ev_class = t.oid
	)
	SELECT name, definition FROM objects
	WHERE @expected = '' OR decides OR name = ANY (string_to_array(@expected, E'\n'))
	ORDER BY name = ANY (string_to_array(@expected, E'\n')) DESC, name LIMIT 1000`

// Drift describes how the tables differ from those that the migrations of this program create. It lists the first few
// differences. An additional index counts only if it is unique. It returns database.ErrUnavailable.
func (v *View) Drift(ctx context.Context) ([]string, error) {
	expected := migratedObjects()
	found, err := v.objects(ctx, expected.Names())
	if err != nil {
		return nil, err
	}
	return expected.Drift(found), nil
}

func migratedObjects() database.Objects {
	objects := database.Objects{}
	for line := range strings.Lines(catalog) {
		name, definition, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		objects[name] = definition
	}
	return objects
}

// migratedTables returns the names of the tables that the migrations create.
func migratedTables() (names []string) {
	for object := range migratedObjects() {
		if name, isTable := strings.CutPrefix(object, `table "`); isTable {
			names = append(names, strings.TrimSuffix(name, `"`))
		}
	}
	return names
}

// objects returns the objects of the migrated tables that affect rows or have one of the names. If names is nil, it
// returns all objects.
func (v *View) objects(ctx context.Context, names []string) (database.Objects, error) {
	return database.ReadObjects(v.Reader().WithContext(ctx).Raw(selectObjects,
		sql.Named("tables", strings.Join(migratedTables(), "\n")), sql.Named("expected", strings.Join(names, "\n"))))
}
