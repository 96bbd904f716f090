package store

import (
	"errors"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

var (
	// ErrClientIDTaken means that another OAuth2 provider has the client_id (RFC 6749, section 2.2).
	ErrClientIDTaken = errors.New("client_id is taken by another provider")
	// ErrKeyTaken means that another record of the caller has the idempotency key.
	ErrKeyTaken = errors.New("idempotency key is taken by another provider")
	// ErrChanged means that a provider was changed or deleted since the change was planned.
	ErrChanged = errors.New("provider was changed or deleted in the meantime")
	// ErrProviderInUse means that the provider serves an application, so it cannot be deleted.
	ErrProviderInUse = errors.New("provider is linked to an application")
	// ErrOverloaded means that the queue is full. Nothing was stored.
	ErrOverloaded = errors.New("too many creates are waiting")
	// ErrNotFound means that there is no such record.
	ErrNotFound = database.ErrNotFound
	// ErrOutcomeUnknown can be settled by a retry with the same idempotency key.
	ErrOutcomeUnknown = database.ErrOutcomeUnknown
	// ErrUnavailable means that nothing was stored.
	ErrUnavailable = database.ErrUnavailable
	// ErrDamaged also means that a row has an invalid value.
	ErrDamaged = seal.ErrDamaged
)
