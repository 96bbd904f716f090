package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// prepareConnection refuses a server that could lose an acknowledged create, and makes the driver return times in UTC.
//
// It returns database.ErrUnsafe or ErrUnavailable.
func prepareConnection(ctx context.Context, conn *pgx.Conn) error {
	readTimesInUTC(conn)
	if preparesStatements(conn) {
		linkOf(conn.PgConn()).prepared = map[string]string{}
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

func readTimesInUTC(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
}

// preparesStatements reports whether the URL lets the driver prepare statements. Behind a pooler, each transaction may
// have another connection.
func preparesStatements(conn *pgx.Conn) bool {
	return conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
}

// keepNotice keeps a warning. The only sign that a commit was not replicated is a warning, which may be translated.
// Poolers may leave out the severity that is never translated.
func keepNotice(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if severity := notice.SeverityUnlocalized; severity == "WARNING" || severity == "" {
		linkOf(conn).notice = notice
	}
}
