package store

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
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
	// ErrProviderInUse says that the provider serves an application, and so cannot be deleted.
	ErrProviderInUse = errors.New("provider is linked to an application")
	// ErrApplicationLinked says that another provider serves the application already.
	ErrApplicationLinked = errors.New("application is linked to another provider")
	// ErrNotLinked says that the provider does not serve the application in the part that was named.
	ErrNotLinked = errors.New("provider is not linked to the application")
	// ErrWrongKind says that a provider of this kind cannot take the part that was asked of it.
	ErrWrongKind = errors.New("provider is of the wrong kind")
	// ErrTokensExist says that the database already has a token, so that there is no first one to make.
	ErrTokensExist = errors.New("tokens exist")
	// ErrOverloaded says that as many creates wait as may. Nothing was stored.
	ErrOverloaded = errors.New("too many creates wait")
	// ErrOutcomeUnknown says that the database did not tell whether the commit took place. A retry with the same
	// idempotency key settles it.
	ErrOutcomeUnknown = database.ErrOutcomeUnknown
	// ErrUnavailable says that the database cannot be used at the moment: it is away, locked, damaged or out of space.
	// Nothing was stored.
	ErrUnavailable = database.ErrUnavailable
	// ErrNoPKLeft says that every pk that fits int32 has been given. It is an ErrUnavailable.
	ErrNoPKLeft = fmt.Errorf("%w: no pk is left", ErrUnavailable)
	// ErrReplicaLacksKey says that a live replica could not open what would be sealed with the key.
	ErrReplicaLacksKey = errors.New("a replica lacks key")
	// ErrReplicaNotPromoted says that a live replica has not told that it seals with the key.
	ErrReplicaNotPromoted = errors.New("a replica does not encrypt with key")
	// ErrKeyPromoted says that the newest key is already in use.
	ErrKeyPromoted = seal.ErrAlreadyPrimary
	// ErrNoKeyset says that there is no keyset file, though the database has secrets that are sealed.
	ErrNoKeyset = seal.ErrNoKeyset
	// ErrKeysetUnusable says that the keyset file cannot be read, can be read by others, or is not that of the database.
	ErrKeysetUnusable = seal.ErrKeysetUnusable
	// ErrKeysetFull says that a keyset file would become so large that it could not be read back.
	ErrKeysetFull = seal.ErrKeysetFull
	// ErrDamaged says that a sealed secret was moved, cut or altered, that the key is gone that it was sealed with, or
	// that a row has a value that cannot be read.
	ErrDamaged = seal.ErrDamaged
)

// found turns GORM's error for a missing record into that of the store.
func found(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return ErrNotFound
	}
	return err
}

// isDuplicate tells whether a statement broke a UNIQUE constraint.
func isDuplicate(err error) bool {
	return errors.Is(err, gorm.ErrDuplicatedKey)
}
