package postgres

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// prepareConnection refuses a server on which an acknowledged create could be lost, and makes times be in UTC.
//
// It returns database.ErrUnsafe or ErrUnavailable.
func prepareConnection(ctx context.Context, conn *pgx.Conn) error {
	readTimesInUTC(conn)
	read, err := readSettings(ctx, conn.PgConn())
	if err != nil {
		return err
	}
	if faults := read.faults(); len(faults) > 0 {
		return faults[0]
	}
	return nil
}

func readTimesInUTC(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
}

// noticeKey is where a connection keeps the last notice of its server.
const noticeKey = "providerd.notice"

// keepNotice keeps whatever is not for debugging: only a warning reports that a commit was not replicated, and one of a
// pooler may lack the severity that is never translated.
func keepNotice(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if !strings.HasPrefix(notice.SeverityUnlocalized, "DEBUG") {
		conn.CustomData()[noticeKey] = notice
	}
}

// takeNotice returns the last notice as an error, and forgets it.
func takeNotice(conn *pgconn.PgConn) error {
	notice, ok := conn.CustomData()[noticeKey].(*pgconn.Notice)
	if !ok {
		return nil
	}
	delete(conn.CustomData(), noticeKey)
	return errors.New(notice.Message)
}

// severityOf returns the severity that the server never translates. PgBouncer sends only the other one, in English.
func severityOf(err *pgconn.PgError) string { return cmp.Or(err.SeverityUnlocalized, err.Severity) }
