package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/providerd/store/database"
)

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
	if isClassified(err) {
		return err
	}
	sentinel := database.ErrUnavailable
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		sentinel = database.ErrNoConnection
	}
	if hasCode(err, lockNotAvailable) {
		sentinel = database.ErrLocked
	}
	return fmt.Errorf("%w: %w%s", sentinel, oneLineError{err}, advice(err))
}

// oneLineError puts the text of an error on one line. The driver's text has a line for each attempt to connect,
// with TLS and without; equal lines are merged.
type oneLineError struct{ error }

// Error returns the text on one line.
func (o oneLineError) Error() string {
	var lines []string
	for line := range strings.Lines(o.error.Error()) {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// Unwrap returns the original error.
func (o oneLineError) Unwrap() error { return o.error }

func isClassified(err error) bool {
	return errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrUnsafe)
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
		errors.Is(err, errSkipped) || pgconn.Timeout(err) || strings.HasSuffix(err.Error(), "conn closed")
}

// isUnavailableCode reports whether an error code (PostgreSQL documentation, appendix A) means the same.
func isUnavailableCode(code string) bool {
	for _, class := range []string{
		"08", // connection exception
		"28", // invalid authorization
		"40", // transaction rollback: serialization failure, deadlock
		"53", // insufficient resources
		"55", // object not in prerequisite state: lock not available
		"57", // operator intervention: canceled, shut down
		"58", // system error
	} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	switch code {
	case insufficientPrivilege, sequenceLimit, readOnly,
		"25P03",          // idle in transaction for too long
		"3D000",          // the database does not exist
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

// Error codes that are used in several places.
const (
	tooManyConnections    = "53300"
	insufficientPrivilege = "42501"
	sequenceLimit         = "2200H"
	lockNotAvailable      = "55P03"
	deadlockDetected      = "40P01"
	readOnly              = "25006"
)

// isRetryable reports whether the statements of a transaction that was not committed may succeed if they are run again.
func isRetryable(err error) bool {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return isUnavailable(err)
	}
	switch native.Code {
	case "40001", deadlockDetected, readOnly, "25P03", tooManyConnections:
		return true
	case "0A000":
		// A table has other columns than when the statement was prepared.
		return native.Routine == "RevalidateCachedQuery"
	default:
		return strings.HasPrefix(native.Code, "08") || strings.HasPrefix(native.Code, "57P")
	}
}

// grantAdvice says what to do about a missing privilege.
const grantAdvice = "; grant the missing privilege to the role of the URL, such as GRANT ALL ON ALL TABLES IN SCHEMA " +
	"public, or GRANT CREATE ON SCHEMA public to create the tables"

// advice says which setting or privilege prevents an error; "" if none does.
func advice(err error) string {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}
	switch native.Code {
	case "26000", "42P05":
		return "; if a pooler such as PgBouncer is in between, add default_query_exec_mode=exec to the URL"
	case insufficientPrivilege:
		return grantAdvice
	case sequenceLimit:
		return "; its MAXVALUE was changed; restore that of the migrations with ALTER SEQUENCE"
	default:
		return ""
	}
}
