package store

import (
	"errors"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

var (
	// ErrNotFound means that there is no such record.
	ErrNotFound = database.ErrNotFound
	// ErrClientIDTaken means that another OAuth2 provider has the client_id (RFC 6749, section 2.2).
	ErrClientIDTaken = errors.New("client_id is taken by another provider")
	// ErrProviderInUse means that the provider serves an application, so it cannot be deleted.
	ErrProviderInUse = errors.New("provider is linked to an application")
	// ErrOverloaded means that the queue is full. Nothing was stored.
	ErrOverloaded = errors.New("too many creates are waiting")
	// ErrOutcomeUnknown means that the database did not report whether it committed. A retry with the same idempotency key
	// settles it.
	ErrOutcomeUnknown = database.ErrOutcomeUnknown
	// ErrUnavailable means that the database cannot be used: it is unreachable, locked, corrupt or out of space. Nothing
	// was stored.
	ErrUnavailable = database.ErrUnavailable
	// ErrDamaged means that a sealed secret was moved, truncated or altered, that its key is missing, or that a row has an
	// invalid value.
	ErrDamaged = seal.ErrDamaged
)
