package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/providerd/store/database"
)

// Error codes (PostgreSQL documentation, appendix A) that are used in several places.
const (
	tooManyConnections    = "53300"
	insufficientPrivilege = "42501"
	sequenceLimit         = "2200H"
	uniqueViolation       = "23505"
	lockNotAvailable      = "55P03"
	deadlockDetected      = "40P01"
	readOnly              = "25006"
	idleInTransaction     = "25P03"
	noDatabase            = "3D000"
	invalidPassword       = "28P01"
	protocolViolation     = "08P01"
)

// errReadOnly means that a transaction cannot write.
var errReadOnly = fmt.Errorf("%w: the server is read-only", database.ErrUnavailable)

// classify wraps an error of the driver in the matching error of package database. It leaves other errors unchanged:
// they are due to a statement or its values, such as a violated constraint, or are bugs of this program.
func classify(err error) error {
	if isUnavailable(err) {
		return unavailable(err)
	}
	return err
}

// unavailable wraps an error that can only mean that the database is unavailable; nil stays nil.
func unavailable(err error) error {
	if err == nil || errors.Is(err, database.ErrUnavailable) {
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
	var network net.Error
	_, isConnecting := errors.AsType[*pgconn.ConnectError](err)
	return isConnecting || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.Timeout(err)
}

// isUnavailableCode reports whether an error code means the same.
func isUnavailableCode(code string) bool {
	// Their classes: connection, authorization, transaction rollback, resources, state of objects (locks), intervention of
	// operators, and system. A pooler may send no code.
	switch code[:min(len(code), 2)] {
	case "08", "28", "40", "53", "55", "57", "58":
		return true
	}
	return slices.Contains([]string{
		insufficientPrivilege, sequenceLimit, readOnly, idleInTransaction, noDatabase,
		"26000", "42P05", // the prepared statements of another connection, behind a pooler
		"XX001", "XX002", // data or index corrupted
	}, code)
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
		isConnection := strings.HasPrefix(native.Code, "08") && native.Code != protocolViolation
		return isConnection || strings.HasPrefix(native.Code, "57P")
	}
}

// explained is an error with a text of one line: the cause and, if one is known, the remedy.
type explained struct{ error }

// Unwrap returns the original error.
func (e explained) Unwrap() error { return e.error }

// Error returns the text. It has neither the user nor the password of a connection.
func (e explained) Error() string {
	cause, remedy := strings.Join(strings.Fields(e.error.Error()), " "), ""
	if connect, ok := errors.AsType[*pgconn.ConnectError](e.error); ok {
		cause, remedy = explainConnect(connect)
	} else if native, ok := errors.AsType[*pgconn.PgError](e.error); ok {
		cause, remedy = native.Error(), remedyOf(native)
	}
	if remedy == "" {
		return cause
	}
	return cause + "; " + remedy
}

func explainConnect(err *pgconn.ConnectError) (cause, remedy string) {
	remedy, attempt := attemptOf(err)
	cause = causeOf(attempt)
	for _, word := range []string{"user", "role"} {
		cause = strings.ReplaceAll(cause, fmt.Sprintf("%s %q", word, err.Config.User), "the "+word+" in the URL")
	}
	if address, _, ok := strings.Cut(attempt.Error(), " ("); ok {
		cause = address + ": " + cause
	}
	switch file, hasNone := err.Config.AfterNetConnect, hasCode(attempt, invalidPassword) && err.Config.Password == ""; {
	case hasNone && file != nil:
		return cause + ": no line of PGPASSFILE matches HOST:PORT:DATABASE:USER", "add one, or correct the URL"
	case hasNone:
		return cause + ": no password was given", "set PGPASSWORD or PGPASSFILE, and write the user into the URL as " +
			"postgres://USER@HOST/DATABASE"
	case hasCode(attempt, invalidPassword) && file == nil && err.Config.Password != os.Getenv("PGPASSWORD"):
		return cause, "correct the user or the password in the URL"
	case hasCode(attempt, noDatabase) && err.Config.Database == "":
		return cause, "append /DATABASE to the URL, which names none"
	}
	return cause, remedy
}

// attemptOf returns the error of the last attempt that got furthest, and its remedy.
func attemptOf(err *pgconn.ConnectError) (remedy string, found error) {
	attempts := []error{err.Unwrap()}
	if joined, ok := attempts[0].(interface{ Unwrap() []error }); ok {
		attempts = joined.Unwrap()
	}
	furthest := 0
	for _, attempt := range attempts {
		if distance, advice := diagnose(attempt); distance >= furthest {
			furthest, remedy, found = distance, advice, attempt
		}
	}
	return remedy, found
}

// causeOf returns the text of the innermost error, on one line.
func causeOf(err error) string {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return "look up " + name.Name + ": " + name.Err
	}
	if isSilence(err) {
		return "no response"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func isSilence(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// startPrimary is the remedy if every server refuses writes.
const startPrimary = "start the primary, or list all servers in the URL; a primary needs " +
	"default_transaction_read_only = off"

// diagnose returns how far an attempt to connect got, and what to do about it: a server that was reached says more than
// one that was not, and what follows without TLS more than that there is none.
func diagnose(err error) (distance int, remedy string) {
	const unreached, plain, reached = 0, 1, 2
	native, ok := errors.AsType[*pgconn.PgError](err)
	if ok && native.Code != insufficientPrivilege {
		return reached, remedyOf(native)
	}
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, isName := errors.AsType[*net.DNSError](err)
	_, isErrno := errors.AsType[syscall.Errno](err)
	for _, known := range []struct {
		isCause  bool
		distance int
		remedy   string
	}{
		{ok, reached, "grant CONNECT on the database to the role in the URL"},
		{
			isCertificate, reached,
			"set sslrootcert in the URL to the server's CA certificate, and use a host name that the server's certificate " +
				"contains",
		},
		{
			strings.HasSuffix(err.Error(), "server refused TLS connection"), plain,
			"turn ssl on in the server, or set sslmode=disable in the URL if the network is safe",
		},
		{isName, unreached, "correct the host in the URL"},
		{errors.Is(err, pgconn.ErrReadOnlyConnection), reached, startPrimary},
		{isSilence(err), unreached, "start the primary, or allow connections to it through the firewall"},
		{isErrno, unreached, "start the primary, or correct the host and port in the URL"},
	} {
		if known.isCause {
			return known.distance, known.remedy
		}
	}
	return reached, "correct the host and port in the URL, or see the log of the server at that address"
}

// remedyOf returns what to do about an error of the server or a pooler; "" if nothing is known.
func remedyOf(err *pgconn.PgError) string {
	if strings.Contains(err.Message, "statement pooling mode") {
		return "set pool_mode of the pooler to transaction or session"
	}
	// A localized message has no such word.
	object, _, _ := strings.Cut(strings.TrimPrefix(err.Message, "permission denied for "), " ")
	const parameter = "correct or remove the parameter in the URL"
	const pooler = "if a pooler such as PgBouncer is in between, add default_query_exec_mode=exec to the URL"
	return map[string]string{
		invalidPassword:    "correct the user, as in postgres://USER@HOST, or the password in PGPASSWORD or PGPASSFILE",
		"28000":            "allow the role to log in, with a line in pg_hba.conf and the LOGIN attribute",
		noDatabase:         "create the database, or correct its name in the URL",
		"3F000":            "correct search_path, or create the schema",
		tooManyConnections: "raise max_connections or the role's limit, or connect through PgBouncer",
		insufficientPrivilege: "grant the role in the URL " + cmp.Or(map[string]string{
			"table": "SELECT on it, and for a server INSERT, UPDATE and DELETE, too", "sequence": "USAGE on it",
			"schema": "USAGE on it, and to create the tables CREATE, too",
		}[object], "the missing privilege"),
		"42704":           parameter,
		"22023":           parameter,
		protocolViolation: parameter,
		"55000":           "allow connections to the database, or use another one",
		"57P03":           "wait until the server accepts connections, or list all servers in the URL",
		"26000":           pooler,
		"42P05":           pooler,
		sequenceLimit:     "its MAXVALUE was changed; use ALTER SEQUENCE to restore the value that the migrations set",
		idleInTransaction: "set idle_in_transaction_session_timeout of the role to 0, or to 10s",
		readOnly:          startPrimary,
		lockNotAvailable:  "end the transaction that holds the lock: see pg_blocking_pids",
		"53100":           "free space on the disk of the server",
	}[err.Code]
}
