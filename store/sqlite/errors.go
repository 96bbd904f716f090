package sqlite

import (
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/database"
)

// classify wraps an error of the driver in the sentinel of the seam that fits it. What it leaves as it is has a meaning
// that depends on the statement (a broken constraint), or none but that this program is wrong.
func classify(err error) error {
	native, ok := errors.AsType[sqlite3.Error](err)
	if !ok || errors.Is(err, database.ErrUnavailable) {
		return err
	}
	sentinel := database.ErrUnavailable
	switch native.Code {
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		sentinel = database.ErrCorrupt
	case sqlite3.ErrFull:
		sentinel = database.ErrFull
	case sqlite3.ErrPerm, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem, sqlite3.ErrReadonly, sqlite3.ErrIoErr,
		sqlite3.ErrCantOpen, sqlite3.ErrProtocol:
	default:
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

// isBusy reports whether a statement has waited in vain for the lock of another program.
func isBusy(err error) bool {
	native, ok := errors.AsType[sqlite3.Error](err)
	return ok && native.Code == sqlite3.ErrBusy
}

// commitError tells an error that leaves nothing behind from one that may leave the whole transaction.
func commitError(err error) error {
	if native, ok := errors.AsType[sqlite3.Error](err); ok && native.Code == sqlite3.ErrIoErr {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	return classify(err)
}
