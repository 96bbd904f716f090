package store

import (
	"context"
	"errors"
	"fmt"
)

// CreateOAuth2Provider stores a provider and returns the record, which is then on disk. Where the key of the request
// made a record before, it returns that one and tells so.
//
// It returns ErrClientIDTaken, ErrKeyReused, ErrOverloaded or ErrUnavailable, in which case nothing is stored, or
// ErrOutcomeUnknown.
func (s *Store) CreateOAuth2Provider(
	ctx context.Context, request CreateRequest, settings OAuth2Settings,
) (record OAuth2Provider, replayed bool, err error) {
	one := newCreate(request, &settings)
	if err := s.batcher.submit(ctx, one); err != nil {
		return OAuth2Provider{}, false, fmt.Errorf("create OAuth2 provider: %w", err)
	}
	if one.replays == 0 {
		return OAuth2Provider{Provider: Provider{Creation: one.creation}, OAuth2Settings: settings}, false, nil
	}
	return replay[OAuth2Provider](ctx, s, one)
}

// CreateWorkspaceDirectoryProvider stores a provider and returns the record, which is then on disk. Where the key of
// the request made a record before, it returns that one and tells so.
//
// It returns ErrKeyReused, ErrOverloaded or ErrUnavailable, in which case nothing is stored, or ErrOutcomeUnknown.
func (s *Store) CreateWorkspaceDirectoryProvider(
	ctx context.Context, request CreateRequest, settings WorkspaceDirectorySettings,
) (record WorkspaceDirectoryProvider, replayed bool, err error) {
	one := newCreate(request, &settings)
	if err := s.batcher.submit(ctx, one); err != nil {
		return WorkspaceDirectoryProvider{}, false, fmt.Errorf("create workspace directory provider: %w", err)
	}
	if one.replays == 0 {
		record := WorkspaceDirectoryProvider{Provider: Provider{Creation: one.creation}, WorkspaceDirectorySettings: settings}
		return record, false, nil
	}
	return replay[WorkspaceDirectoryProvider](ctx, s, one)
}

// replay reads the record that the key of a create made before. It is read apart from the batch that found it, and
// where another server has become the primary meanwhile, its pk may be gone or another record's. It returns
// ErrUnavailable then.
func replay[R Record](ctx context.Context, s *Store, one *create) (record R, replayed bool, err error) {
	stored, err := s.Provider(ctx, one.replays)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return record, false, fmt.Errorf("replay: %w", err)
	}
	if err != nil || !isOfSameScope(stored.Common().Creation, one.creation) {
		return record, false, fmt.Errorf("%w: replay: provider %d is not the one that was found", ErrUnavailable, one.replays)
	}
	record, ok := stored.(R)
	if !ok {
		return record, false, fmt.Errorf("replay: provider %d is a %T", one.replays, stored)
	}
	return record, true, nil
}

// isOfSameScope tells whether two creations have the same idempotency key.
func isOfSameScope(a, b Creation) bool {
	scope, hasKey := a.idempotencyScope()
	other, _ := b.idempotencyScope()
	return hasKey && scope == other
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
		digest:   request.BodyDigest,
		settings: settings,
	}
}
