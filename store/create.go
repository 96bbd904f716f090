package store

import (
	"context"
	"errors"
	"fmt"
)

// CreateOAuth2Provider stores a provider and returns its record once it is on disk. If the idempotency key of the
// request already created a record, it returns that record with replayed set. With ValidateOnly, it returns the same
// outcome but stores nothing; a record that would be created has no pk.
//
// It returns ErrClientIDTaken, ErrKeyReused, ErrOverloaded, ErrNoPKLeft, ErrUnavailable, or ErrDamaged if the record to
// replay is corrupt; nothing is stored then. It returns ErrOutcomeUnknown if the record may have been stored.
func (s *Store) CreateOAuth2Provider(
	ctx context.Context, request CreateRequest, settings OAuth2Settings,
) (record OAuth2Provider, replayed bool, err error) {
	c := newCreate(request, &settings)
	if record, replayed, err = submit[OAuth2Provider](ctx, s, c); err != nil || replayed {
		return record, replayed, err
	}
	return OAuth2Provider{Provider: Provider{Creation: c.creation}, OAuth2Settings: settings}, false, nil
}

// CreateWorkspaceDirectoryProvider is like CreateOAuth2Provider. It never returns ErrClientIDTaken, because this kind
// has no unique field.
func (s *Store) CreateWorkspaceDirectoryProvider(
	ctx context.Context, request CreateRequest, settings WorkspaceDirectorySettings,
) (record WorkspaceDirectoryProvider, replayed bool, err error) {
	c := newCreate(request, &settings)
	if record, replayed, err = submit[WorkspaceDirectoryProvider](ctx, s, c); err != nil || replayed {
		return record, replayed, err
	}
	record = WorkspaceDirectoryProvider{Provider: Provider{Creation: c.creation}, WorkspaceDirectorySettings: settings}
	return record, false, nil
}

// submit waits for the outcome of a create and, for a replay, reads the record.
func submit[R Record](ctx context.Context, s *Store, c *create) (record R, replayed bool, err error) {
	if err = s.checkKeyset(ctx); err == nil {
		err = s.batcher.submit(ctx, c)
	}
	if err != nil {
		return record, false, fmt.Errorf("create %s provider: %w", c.creation.Kind, err)
	}
	if c.replays == 0 {
		return record, false, nil
	}
	scope, _ := c.creation.idempotencyScope()
	stored, err := s.recordOfKey(ctx, c.replays, scope)
	if err != nil {
		return record, false, fmt.Errorf("replay: %w", err)
	}
	record, ok := stored.(R)
	if !ok {
		return record, false, fmt.Errorf("replay: provider %d is a %T", c.replays, stored)
	}
	return record, true, nil
}

// PriorRecord returns the record that a reused idempotency key created. It returns ErrDamaged or ErrUnavailable.
func (s *Store) PriorRecord(ctx context.Context, reused *KeyReusedError) (Record, error) {
	record, err := s.recordOfKey(ctx, reused.PK, reused.scope)
	if err != nil {
		return nil, fmt.Errorf("read record of reused idempotency key: %w", err)
	}
	return record, nil
}

// recordOfKey reads the record that an idempotency key created. It is read after the transaction that found it; if a
// standby was promoted in between, the pk may be missing or belong to another record, which is ErrUnavailable.
func (s *Store) recordOfKey(ctx context.Context, pk int32, scope idempotencyScope) (Record, error) {
	record, err := s.Provider(ctx, pk)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if err == nil && scope.created(record) {
		return record, nil
	}
	return nil, fmt.Errorf("%w: provider %d changed while it was read", ErrUnavailable, pk)
}

func newCreate(request CreateRequest, settings settings) *create {
	return &create{
		creation: Creation{
			Kind:           settings.kind(),
			Name:           request.Name,
			CreatedBy:      request.CreatedBy,
			RequestID:      request.RequestID,
			RemoteAddress:  request.RemoteAddress,
			IdempotencyKey: request.IdempotencyKey,
		},
		digest:       request.BodyDigest,
		settings:     settings,
		validateOnly: request.ValidateOnly,
		timing:       request.Timing,
	}
}

// CreateRequest holds what a create has beside its settings.
type CreateRequest struct {
	// Name of the provider; not unique.
	Name string
	// CreatedBy is the caller: the name of the access token.
	CreatedBy string
	// RequestID is the X-Request-Id of the HTTP request.
	RequestID string
	// IdempotencyKey lets a retry find the record of the first attempt; nil for none. It is scoped to the caller and the
	// kind of provider.
	IdempotencyKey *string
	// BodyDigest identifies the request body; nil without IdempotencyKey. Only an HMAC of it is stored.
	BodyDigest []byte
	// RemoteAddress is the IP address of the client.
	RemoteAddress string
	// ValidateOnly makes a create find its outcome and store nothing, not even the key.
	ValidateOnly bool
	// Timing, if not nil, is filled in even if the create is refused.
	Timing *Timing
}
