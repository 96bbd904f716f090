package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/providerd/store/database"
)

// minServerVersion is the oldest PostgreSQL that this package is tested with.
const minServerVersion = 15_00_00

const selectSettings = `SELECT current_setting('server_version_num'), current_setting('fsync'),
	current_setting('full_page_writes'), current_setting('synchronous_commit'),
	current_setting('transaction_read_only')`

// prepareConnection refuses a server on which an acknowledged create could be lost, and makes times be in UTC.
//
// It returns database.ErrUnsafe or ErrUnavailable.
func prepareConnection(ctx context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	results, err := conn.PgConn().Exec(ctx, selectSettings).ReadAll()
	if err != nil {
		return fmt.Errorf("read the settings of the database: %w", unavailable(err))
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 5 {
		return fmt.Errorf("%w: the server does not tell its settings", database.ErrUnavailable)
	}
	row := results[0].Rows[0]
	return checkSettings(string(row[0]), string(row[1]), string(row[2]), string(row[3]), string(row[4]))
}

func checkSettings(version, fsync, fullPageWrites, synchronousCommit, readOnly string) error {
	number, err := strconv.Atoi(version)
	switch {
	case err != nil || number < minServerVersion:
		return fmt.Errorf("%w: the server is older than PostgreSQL 15", database.ErrUnsafe)
	case fsync != "on":
		return unsafeSetting("fsync", fsync)
	case fullPageWrites != "on":
		return unsafeSetting("full_page_writes", fullPageWrites)
	case synchronousCommit == "off" || synchronousCommit == "local":
		return unsafeSetting("synchronous_commit", synchronousCommit)
	case readOnly != "off":
		return fmt.Errorf("%w: the server is read-only; name the primary, or all servers, in --database",
			database.ErrUnavailable)
	default:
		return nil
	}
}

func unsafeSetting(name, value string) error {
	return fmt.Errorf("%w: its setting %s is %q, with which it could lose what it has acknowledged; set it to on",
		database.ErrUnsafe, name, value)
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
