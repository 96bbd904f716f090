package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/database"
)

// selectSettings selects whether the server is older than the oldest PostgreSQL that this package is tested with, and
// the settings that decide whether it keeps what it acknowledges, as it was.
const selectSettings = `SELECT current_setting('server_version_num')::integer < 150000,
	current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
	current_setting('transaction_read_only'), current_setting('server_encoding'), current_setting('bytea_output'),
	coalesce(current_schema(), ''), current_setting('search_path'),
	current_setting('idle_in_transaction_session_timeout'),
	current_setting('idle_in_transaction_session_timeout')::interval BETWEEN '1ms' AND '999ms'`

// settings are the values of selectSettings.
type settings struct {
	isOld, endsIdle                                        bool
	fsync, fullPageWrites, synchronousCommit               string
	readOnly, encoding, byteaOutput, schema, schemas, idle string
	// readsText is set if the connection reads values as text.
	readsText bool
}

// readSettings reads the settings of a server. It returns database.ErrUnavailable if that fails.
func readSettings(ctx context.Context, conn *pgx.Conn) (s settings, err error) {
	s.readsText = !preparesStatements(conn)
	err = conn.QueryRow(ctx, selectSettings).Scan(&s.isOld, &s.fsync, &s.fullPageWrites, &s.synchronousCommit, &s.readOnly,
		&s.encoding, &s.byteaOutput, &s.schema, &s.schemas, &s.idle, &s.endsIdle)
	if err != nil {
		return s, fmt.Errorf("read the settings of the database: %w", unavailable(err))
	}
	return s, nil
}

// faults returns the reasons to refuse the server, each a database.ErrUnsafe or ErrUnavailable.
func (s settings) faults() (faults []error) {
	const unsafe = "setting %s is %q, which could lose acknowledged creates; set it to on"
	for _, known := range []struct {
		isFault bool
		kind    error
		text    string
		values  []any
	}{
		{s.isOld, database.ErrUnsafe, "the server is older than PostgreSQL 15; use a newer one", nil},
		{s.fsync != "on", database.ErrUnsafe, unsafe, []any{"fsync", s.fsync}},
		{s.fullPageWrites != "on", database.ErrUnsafe, unsafe, []any{"full_page_writes", s.fullPageWrites}},
		{
			s.synchronousCommit == "off" || s.synchronousCommit == "local", database.ErrUnsafe,
			unsafe,
			[]any{"synchronous_commit", s.synchronousCommit},
		},
		{
			s.encoding != "UTF8", database.ErrUnsafe,
			"server_encoding is %q, which cannot store every character; create a database with ENCODING 'UTF8'",
			[]any{s.encoding},
		},
		{
			s.readsText && s.byteaOutput != "hex", database.ErrUnsafe,
			"setting bytea_output is %q, which default_query_exec_mode does not support; set it to hex for the role of the URL",
			[]any{s.byteaOutput},
		},
		{
			s.readOnly != "off", database.ErrUnavailable,
			"the server is read-only; name the primary, or all servers, in --database", nil,
		},
		{
			s.schema == "", database.ErrUnavailable,
			"search_path is %q, which leads to no schema; create the schema, or correct search_path",
			[]any{s.schemas},
		},
		{
			s.endsIdle, database.ErrUnavailable,
			"idle_in_transaction_session_timeout is %q, which ends working transactions; set it to 0, or to 10s",
			[]any{s.idle},
		},
	} {
		if known.isFault {
			faults = append(faults, fmt.Errorf("%w: "+known.text, append([]any{known.kind}, known.values...)...))
		}
	}
	return faults
}
