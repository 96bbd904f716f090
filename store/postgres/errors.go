package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/providerd/store/database"
)

// Error codes (PostgreSQL documentation, appendix A) that are used in several places.
const (
	tooManyConnections    = "53300"
	insufficientPrivilege = "42501"
	sequenceLimit         = "2200H"
	lockNotAvailable      = "55P03"
	deadlockDetected      = "40P01"
	readOnly              = "25006"
	idleInTransaction     = "25P03"
	noDatabase            = "3D000"
)

// errReadOnly means that a transaction cannot write.
var errReadOnly = fmt.Errorf("%w: the server is read-only", database.ErrUnavailable)

// classify wraps an error of the driver in the matching error of package database. It leaves other errors unchanged:
// they are due to a statement or its values, such as a violated constraint, or are bugs of this program.
func classify(err error) error {
	if err == nil || !isUnavailable(err) {
		return err
	}
	return unavailable(err)
}

// unavailable wraps an error that can only mean that the database is unavailable.
func unavailable(err error) error {
	if errors.Is(err, database.ErrUnavailable) {
		return err
	}
	sentinel := database.ErrUnavailable
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		sentinel = database.ErrNoConnection
	}
	if hasCode(err, lockNotAvailable) {
		sentinel = database.ErrLocked
	}
	return fmt.Errorf("%w: %w", sentinel, explained{err})
}

// isUnavailable reports whether the server cannot be reached or cannot work.
func isUnavailable(err error) bool {
	if native, ok := errors.AsType[*pgconn.PgError](err); ok {
		return isUnavailableCode(native.Code)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, pgconn.ErrConnClosed) || pgconn.Timeout(err)
}

// isUnavailableCode reports whether an error code means the same.
func isUnavailableCode(code string) bool {
	// A pooler may send none.
	switch code[:min(len(code), 2)] {
	case "08", // connection exception
		"28", // invalid authorization
		"40", // transaction rollback: serialization failure, deadlock
		"53", // insufficient resources
		"55", // object not in prerequisite state: lock not available
		"57", // operator intervention: canceled, shut down
		"58": // system error
		return true
	}
	switch code {
	case insufficientPrivilege, sequenceLimit, readOnly, idleInTransaction, noDatabase,
		"26000", "42P05", // the prepared statements of another connection, behind a pooler
		"XX001", "XX002": // data or index corrupted
		return true
	default:
		return false
	}
}

// hasCode reports whether an error of the server has a code.
func hasCode(err error, code string) bool {
	native, ok := errors.AsType[*pgconn.PgError](err)
	return ok && native.Code == code
}

// isRetryable reports whether the statements of a transaction that was not committed may succeed if they are run again.
func isRetryable(err error) bool {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return isUnavailable(err) || errors.Is(err, errReadOnly)
	}
	switch native.Code {
	case "40001", deadlockDetected, readOnly, idleInTransaction, tooManyConnections:
		return true
	case "0A000":
		// A table has other columns than when the statement was prepared.
		return native.Routine == "RevalidateCachedQuery"
	default:
		return strings.HasPrefix(native.Code, "08") || strings.HasPrefix(native.Code, "57P")
	}
}
