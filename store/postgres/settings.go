package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

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
	fault := func(isFault bool, kind error, text string, values ...any) {
		if isFault {
			faults = append(faults, fmt.Errorf("%w: "+text, append([]any{kind}, values...)...))
		}
	}
	unsafe := func(isUnsafe bool, name, value string) {
		fault(isUnsafe, database.ErrUnsafe,
			"setting %s is %q, which could lose acknowledged creates; set it to on", name, value)
	}
	fault(s.isOld, database.ErrUnsafe, "the server is older than PostgreSQL 15; use a newer one")
	unsafe(s.fsync != "on", "fsync", s.fsync)
	unsafe(s.fullPageWrites != "on", "full_page_writes", s.fullPageWrites)
	unsafe(s.synchronousCommit == "off" || s.synchronousCommit == "local", "synchronous_commit", s.synchronousCommit)
	fault(s.encoding != "UTF8", database.ErrUnsafe,
		"server_encoding is %q, which cannot store every character; create a database with ENCODING 'UTF8'", s.encoding)
	fault(s.readsText && s.byteaOutput != "hex", database.ErrUnsafe,
		"setting bytea_output is %q, which default_query_exec_mode does not support; set it to hex for the role in the URL",
		s.byteaOutput)
	fault(s.readOnly != "off", database.ErrUnavailable,
		"the server is read-only; list the primary, or all servers, in --database")
	fault(s.schema == "", database.ErrUnavailable,
		"search_path is %q, which contains no existing schema; create the schema, or correct search_path", s.schemas)
	fault(s.endsIdle, database.ErrUnavailable,
		"idle_in_transaction_session_timeout is %q, which can end working transactions; set it to 0, or to 10s",
		s.idle)
	return faults
}

// prepareConnection refuses a server that could lose an acknowledged create, and makes the driver return times in UTC.
//
// It returns database.ErrUnsafe or ErrUnavailable.
func prepareConnection(ctx context.Context, conn *pgx.Conn) error {
	_ = readTimesInUTC(ctx, conn)
	if preparesStatements(conn) {
		linkOf(conn.PgConn().Conn()).prepared = map[string]string{}
	}
	read, err := readSettings(ctx, conn)
	if faults := read.faults(); err == nil && len(faults) > 0 {
		err = faults[0]
	}
	if err != nil {
		// The driver does not close it.
		_ = conn.Close(ctx)
	}
	return err
}

func readTimesInUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// preparesStatements reports whether the URL lets the driver prepare statements. Behind a pooler, each transaction may
// have another connection.
func preparesStatements(conn *pgx.Conn) bool {
	return conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
}

// keepNotice keeps a warning. The only sign that a commit was not replicated is a warning of COMMIT, which may be
// translated; other statements warn of what does not affect the outcome, such as transaction ids that run out. Poolers
// may leave out the severity that is never translated.
func keepNotice(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if severity := notice.SeverityUnlocalized; severity == "WARNING" || severity == "" {
		linkOf(conn.Conn()).warning = errors.New(notice.Message)
	}
}
