package store

import (
	"context"
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
	return replay[OAuth2Provider](ctx, s, one.replays)
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
	return replay[WorkspaceDirectoryProvider](ctx, s, one.replays)
}

// replay reads the record that a key made before.
func replay[R Record](ctx context.Context, s *Store, pk int32) (record R, replayed bool, err error) {
	stored, err := s.Provider(ctx, pk)
	if err != nil {
		return record, false, fmt.Errorf("replay: %w", err)
	}
	record, ok := stored.(R)
	if !ok {
		return record, false, fmt.Errorf("replay: provider %d is a %T", pk, stored)
	}
	return record, true, nil
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
