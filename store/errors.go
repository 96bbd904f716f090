package store

import (
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"
	"gorm.io/gorm"
)

var (
	// ErrNotFound says that no record has the key that was asked for.
	ErrNotFound = errors.New("no such record")
	// ErrTokenMistyped says that a text is no token: its form or its checksum is wrong. It is an ErrNotFound.
	ErrTokenMistyped = fmt.Errorf("%w: not the form of a token, or its checksum is wrong", ErrNotFound)
	// ErrClientIDTaken says that another OAuth2 provider has the client_id (RFC 6749 section 2.2).
	ErrClientIDTaken = errors.New("client_id is taken by another provider")
	// ErrSlugTaken says that another application has the slug.
	ErrSlugTaken = errors.New("slug is taken by another application")
	// ErrProviderLinked says that the provider serves another application already.
	ErrProviderLinked = errors.New("provider is linked to another application")
	// ErrWrongKind says that a provider of this kind cannot take the part that was asked of it.
	ErrWrongKind = errors.New("provider is of the wrong kind")
	// ErrTokensExist says that the database already has a token, so that there is no first one to make.
	ErrTokensExist = errors.New("tokens exist")
	// ErrKeyReused says that the caller used the idempotency key for another body before.
	ErrKeyReused = errors.New("idempotency key was used for another body")
	// ErrOverloaded says that as many creates wait as may. Nothing was stored.
	ErrOverloaded = errors.New("too many creates wait")
	// ErrOutcomeUnknown says that the database did not tell whether the commit took place. A retry with the same
	// idempotency key settles it.
	ErrOutcomeUnknown = errors.New("outcome of the commit is unknown")
	// ErrUnavailable says that the database cannot be used at the moment: it is away, locked, damaged or out of space.
	// Nothing was stored.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrNoDatabase says that there is no providerd database at the place that was named.
	ErrNoDatabase = errors.New("no providerd database")
	// ErrForeignDatabase says that a file is a SQLite database, but of another program.
	ErrForeignDatabase = errors.New("not a database of providerd")
	// ErrExposedDatabase says that others than its owner can write to the file of the database.
	ErrExposedDatabase = errors.New("database is exposed")
	// ErrNoPKLeft says that every pk that fits int32 has been given. It is an ErrUnavailable.
	ErrNoPKLeft = fmt.Errorf("%w: no pk is left", ErrUnavailable)
	// ErrNewerDatabase says that the database was written by a later version of providerd.
	ErrNewerDatabase = errors.New("database is from a newer version of providerd")
	// ErrNoKeyset says that there is no keyset file, though the database has secrets that are sealed.
	ErrNoKeyset = errors.New("no keyset file")
	// ErrKeysetUnusable says that the keyset file cannot be read, can be read by others, or is not that of the database.
	ErrKeysetUnusable = errors.New("keyset cannot be used")
	// ErrDamaged says that a sealed secret was moved, cut or altered, or that the key is gone that it was sealed with.
	ErrDamaged = errors.New("sealed secret is damaged, or its key is missing")
	// ErrOlderDatabase says that the database must be migrated before this version of providerd can use it.
	ErrOlderDatabase = errors.New("database is from an older version of providerd")
)

// classify wraps a database error in the sentinel that fits it. What it leaves as it is has a meaning that depends on the
// statement (a broken constraint), or none but that this program is wrong.
func classify(err error) error {
	var native sqlite3.Error
	switch {
	case err == nil, errors.Is(err, ErrUnavailable):
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return ErrNotFound
	case errors.As(err, &native) && isAway(native.Code):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return err
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

// isDuplicate tells whether a statement broke a UNIQUE constraint.
func isDuplicate(err error) bool {
	return errors.Is(err, gorm.ErrDuplicatedKey)
}
