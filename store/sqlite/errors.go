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
	if !ok || !isAway(native.Code) || errors.Is(err, database.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", sentinelOf(native.Code), err)
}

// sentinelOf is what an operator can put right, where that is known.
func sentinelOf(code sqlite3.ErrNo) error {
	switch code {
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		return database.ErrSpoilt
	case sqlite3.ErrFull:
		return database.ErrFull
	default:
		return database.ErrUnavailable
	}
}

// isAway tells whether SQLite could not work with the files, the memory or the locks that it has.
func isAway(code sqlite3.ErrNo) bool {
	switch code {
	case sqlite3.ErrPerm, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem, sqlite3.ErrReadonly, sqlite3.ErrIoErr,
		sqlite3.ErrCorrupt, sqlite3.ErrFull, sqlite3.ErrCantOpen, sqlite3.ErrProtocol, sqlite3.ErrNotADB:
		return true
	default:
		return false
	}
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
