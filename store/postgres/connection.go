package postgres

import (
	"context"
	"errors"
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
	read, err := readSettings(ctx, conn)
	if faults := read.faults(); err == nil && len(faults) > 0 {
		err = faults[0]
	}
	if err != nil {
		// The driver leaves it open.
		_ = conn.Close(ctx)
	}
	return err
}

func readTimesInUTC(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
}

// noticeKey is where a connection keeps the last notice of its server.
const noticeKey = "providerd.notice"

// keepNotice keeps a warning, in whatever language: only one reports that a commit was not replicated. A pooler may
// send no severity that is never translated.
func keepNotice(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if severity := notice.SeverityUnlocalized; severity == "WARNING" || severity == "" {
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
