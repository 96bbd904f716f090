package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/link"
)

// losesCreates ends the description of a setting, before the value that it must have.
const losesCreates = `'", which could lose acknowledged creates or their events; set it to `

// unsafeSettings describes the settings due to which the server may not keep what it acknowledges, or not its events.
// It is empty if there are none. Because they can change while a connection is open, each transaction reads them.
const unsafeSettings = `concat_ws('; ',
	'setting fsync is "' || nullif(current_setting('fsync'), 'on') || ` + losesCreates + `on',
	'setting full_page_writes is "' || nullif(current_setting('full_page_writes'), 'on') || ` + losesCreates + `on',
	'setting session_replication_role is "' || nullif(current_setting('session_replication_role'), 'origin') ||
		` + losesCreates + `origin')`

// selectRefusals selects the reasons to refuse a server, and whether it is unsafe. $1 is whether values are read as
// text. PostgreSQL 15 is the oldest that this package is tested with.
const selectRefusals = `SELECT is_unsafe, text FROM (VALUES
	(true, CASE WHEN current_setting('server_version_num')::integer < 150000 THEN
		'the server is older than PostgreSQL 15; use a newer one' END),
	(true, nullif(` + unsafeSettings + `, '')),
	(true, CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN
		'setting synchronous_commit is "' || current_setting('synchronous_commit') || ` + losesCreates + `on' END),
	(true, 'setting data_sync_retry is "' || nullif(current_setting('data_sync_retry'), 'off') ||
		` + losesCreates + `off'),
	(true, 'setting zero_damaged_pages is "' || nullif(current_setting('zero_damaged_pages'), 'off') ||
		` + losesCreates + `off'),
	(true, 'server_encoding is "' || nullif(current_setting('server_encoding'), 'UTF8') ||
		'", which cannot store every character; create a database with ENCODING ''UTF8'''),
	(true, CASE WHEN $1 THEN 'setting bytea_output is "' || nullif(current_setting('bytea_output'), 'hex') ||
		'", which default_query_exec_mode does not support; set it to hex for the role in the URL' END),
	(false, CASE WHEN current_setting('transaction_read_only') <> 'off' THEN
		'the server is read-only; list the primary, or all servers, in --database' END),
	(false, CASE WHEN current_schema() IS NULL THEN 'search_path is "' || current_setting('search_path') ||
		'", which contains no existing schema; correct search_path, or create the schema' END),
	(false, CASE WHEN current_setting('idle_in_transaction_session_timeout')::interval BETWEEN '1ms' AND '999ms' THEN
		'idle_in_transaction_session_timeout is "' || current_setting('idle_in_transaction_session_timeout') ||
		'", which can end working transactions; set it to 0, or to 10s' END))
	AS faults (is_unsafe, text) WHERE text IS NOT NULL`

// readRefusals returns the reasons to refuse a server, each a database.ErrUnsafe or ErrUnavailable. It returns
// database.ErrUnavailable if they cannot be read.
func readRefusals(ctx context.Context, conn *pgx.Conn) (faults []error, err error) {
	rows, _ := conn.Query(ctx, selectRefusals, link.Of(conn.PgConn().Conn()).Prepared == nil) // CollectRows has its error.
	faults, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (fault, err error) {
		var isUnsafe bool
		var text string
		kind := database.ErrUnavailable
		if err = row.Scan(&isUnsafe, &text); isUnsafe {
			kind = database.ErrUnsafe
		}
		return fmt.Errorf("%w: %s", kind, text), err
	})
	if err != nil {
		return nil, fmt.Errorf("read the settings of the database: %w", unavailable(err))
	}
	return faults, nil
}

// prepareConnection returns the first reason to refuse a server.
func prepareConnection(ctx context.Context, conn *pgx.Conn) error {
	faults, err := readRefusals(ctx, conn)
	if len(faults) > 0 {
		err = faults[0]
	}
	if err != nil {
		// The driver does not close it.
		_ = conn.Close(ctx)
	}
	return err
}
