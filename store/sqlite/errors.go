package sqlite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/database"
)

// classify wraps an error of the driver in the matching error of package database. It leaves the others as they are: a
// constraint violation, whose meaning depends on the statement, or an error of this program.
func classify(err error) error {
	native, ok := errors.AsType[sqlite3.Error](err)
	if !ok || errors.Is(err, database.ErrUnavailable) {
		return err
	}
	sentinel, remedy := database.ErrUnavailable, ""
	// The driver's backup returns extended codes, whose low byte is the primary one.
	const primary = 0xff
	switch native.Code & primary {
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		sentinel = database.ErrCorrupt
	case sqlite3.ErrFull:
		sentinel = database.ErrFull
	case sqlite3.ErrPerm, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem, sqlite3.ErrIoErr, sqlite3.ErrCantOpen,
		sqlite3.ErrProtocol:
	case sqlite3.ErrReadonly:
		remedy = "; make the file and its directory writable for this user, or copy the file to a directory of its own"
	default:
		return err
	}
	return fmt.Errorf("%w: %w%s", sentinel, err, remedy)
}

// commitError classifies the error of a COMMIT. After an I/O error, the transaction may or may not be stored.
func commitError(err error) error {
	if native, ok := errors.AsType[sqlite3.Error](err); ok && native.Code == sqlite3.ErrIoErr {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	return classify(err)
}

// insertError classifies the error of an INSERT. If the error is due to a row, such as one that violates a constraint,
// it is database.ErrInsertApart.
func insertError(err error) error {
	if native, ok := errors.AsType[sqlite3.Error](err); ok &&
		slices.Contains([]sqlite3.ErrNo{sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch}, native.Code) {
		return fmt.Errorf("%w: %w", database.ErrInsertApart, err)
	}
	return classify(err)
}
