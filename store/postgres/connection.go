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

// warningKey is where a connection keeps the last warning of its server.
const warningKey = "providerd.warning"

// keepWarning keeps what the server warns of. A commit that was not replicated is told only so.
func keepWarning(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Severity == "WARNING" {
		conn.CustomData()[warningKey] = notice
	}
}

// takeWarning returns the last warning, and forgets it.
func takeWarning(conn *pgconn.PgConn) error {
	notice, ok := conn.CustomData()[warningKey].(*pgconn.Notice)
	if !ok {
		return nil
	}
	delete(conn.CustomData(), warningKey)
	return errors.New(notice.Message)
}
