package store

import (
	"context"
	"errors"
	"fmt"
)

// CreateOAuth2Provider stores a provider and returns the record, which is then on disk. Where the key of the request
// made a record before, it returns that one and tells so. A request that is only to be validated gets the same outcome,
// but stores nothing: a record that would be made has no pk.
//
// It returns ErrClientIDTaken, ErrKeyReused, ErrOverloaded, ErrNoPKLeft, ErrDamaged for the record that the key made
// before, or ErrUnavailable, in which cases nothing is stored, or ErrOutcomeUnknown.
func (s *Store) CreateOAuth2Provider(
	ctx context.Context, request CreateRequest, settings OAuth2Settings,
) (record OAuth2Provider, replayed bool, err error) {
	one := newCreate(request, &settings)
	if record, replayed, err = carryOut[OAuth2Provider](ctx, s, one); err != nil || replayed {
		return record, replayed, err
	}
	return OAuth2Provider{Provider: Provider{Creation: one.creation}, OAuth2Settings: settings}, false, nil
}

// CreateWorkspaceDirectoryProvider is CreateOAuth2Provider for the other kind, which has no value that could be taken.
func (s *Store) CreateWorkspaceDirectoryProvider(
	ctx context.Context, request CreateRequest, settings WorkspaceDirectorySettings,
) (record WorkspaceDirectoryProvider, replayed bool, err error) {
	one := newCreate(request, &settings)
	if record, replayed, err = carryOut[WorkspaceDirectoryProvider](ctx, s, one); err != nil || replayed {
		return record, replayed, err
	}
	record = WorkspaceDirectoryProvider{Provider: Provider{Creation: one.creation}, WorkspaceDirectorySettings: settings}
	return record, false, nil
}

// carryOut waits for the outcome of a create, and reads the record that its key made before.
func carryOut[R Record](ctx context.Context, s *Store, one *create) (record R, replayed bool, err error) {
	if err := s.batcher.submit(ctx, one); err != nil {
		return record, false, fmt.Errorf("create %s provider: %w", one.creation.Kind, err)
	}
	if one.replays == 0 {
		return record, false, nil
	}
	scope, _ := one.creation.idempotencyScope()
	stored, err := s.recordOfKey(ctx, one.replays, scope)
	if err != nil {
		return record, false, fmt.Errorf("replay: %w", err)
	}
	record, ok := stored.(R)
	if !ok {
		return record, false, fmt.Errorf("replay: provider %d is a %T", one.replays, stored)
	}
	return record, true, nil
}

// MadeBefore returns the record that an idempotency key made, which was then used for another body. It returns
// ErrDamaged or ErrUnavailable.
func (s *Store) MadeBefore(ctx context.Context, reused *KeyReusedError) (Record, error) {
	record, err := s.recordOfKey(ctx, reused.PK, reused.scope)
	if err != nil {
		return nil, fmt.Errorf("record of a key that was used before: %w", err)
	}
	return record, nil
}

// recordOfKey reads the record that a key made. It is read apart from the batch that found it, and where another server
// has become the primary meanwhile, its pk may be gone or another record's. It returns ErrUnavailable then.
func (s *Store) recordOfKey(ctx context.Context, pk int32, scope idempotencyScope) (Record, error) {
	record, err := s.Provider(ctx, pk)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if err == nil && scope.isOf(record) {
		return record, nil
	}
	return nil, fmt.Errorf("%w: provider %d is not the one that was found", ErrUnavailable, pk)
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

// CreateRequest says what a provider is to be called and who asks for it.
type CreateRequest struct {
	// Name of the provider; not unique.
	Name string
	// CreatedBy is the name of the token that the caller showed.
	CreatedBy string
	// RequestID identifies the exchange in which the provider was created.
	RequestID string
	// IdempotencyKey makes a retry find the record of the first try; nil for none. It is scoped to the caller and the
	// kind.
	IdempotencyKey *string
	// BodyDigest tells bodies apart; it goes with the key, and is not stored as it stands.
	BodyDigest []byte
	// RemoteAddress is the IP address that the request came from.
	RemoteAddress string
	// ValidateOnly lets a create go the way of all creates, as far as it is decided, and stores nothing, not even the key.
	ValidateOnly bool
	// Timing is filled in while the create is carried out, also where it is refused; nil where nobody asks for it.
	Timing *Timing
}
