package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// CreateOAuth2Provider stores a provider and returns the record, which is then on disk. Where the key of the creation
// made a record before, it returns that one and tells so.
//
// It returns ErrClientIDTaken, ErrKeyReused, ErrOverloaded or ErrUnavailable, in which case nothing is stored, or
// ErrOutcomeUnknown.
func (s *Store) CreateOAuth2Provider(
	ctx context.Context, creation Creation, settings OAuth2Settings,
) (record OAuth2Provider, replayed bool, err error) {
	one := newCreate(KindOAuth2, creation, &settings)
	if err := s.creates.submit(ctx, one); err != nil {
		return OAuth2Provider{}, false, fmt.Errorf("create OAuth2 provider: %w", err)
	}
	if one.replays == 0 {
		return OAuth2Provider{Provider: Provider{Audit: one.audit}, OAuth2Settings: settings}, false, nil
	}
	return replay[OAuth2Provider](ctx, s, one.replays)
}

// CreateWorkspaceDirectoryProvider stores a provider and returns the record, which is then on disk. Where the key of
// the creation made a record before, it returns that one and tells so.
//
// It returns ErrKeyReused, ErrOverloaded or ErrUnavailable, in which case nothing is stored, or ErrOutcomeUnknown.
func (s *Store) CreateWorkspaceDirectoryProvider(
	ctx context.Context, creation Creation, settings WorkspaceDirectorySettings,
) (record WorkspaceDirectoryProvider, replayed bool, err error) {
	one := newCreate(KindWorkspaceDirectory, creation, &settings)
	if err := s.creates.submit(ctx, one); err != nil {
		return WorkspaceDirectoryProvider{}, false, fmt.Errorf("create workspace directory provider: %w", err)
	}
	if one.replays == 0 {
		record := WorkspaceDirectoryProvider{Provider: Provider{Audit: one.audit}, WorkspaceDirectorySettings: settings}
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

func newCreate(kind Kind, creation Creation, settings any) *create {
	return &create{
		audit: Audit{
			Kind:           kind,
			Name:           creation.Name,
			CreatedAt:      now(),
			CreatedBy:      creation.CreatedBy,
			RequestID:      creation.RequestID,
			RemoteAddress:  creation.RemoteAddress,
			IdempotencyKey: creation.IdempotencyKey,
		},
		digest:   creation.BodyDigest,
		settings: settings,
	}
}

// write runs statements in a durable transaction of their own: when it returns nil, they are on disk; otherwise none of
// them is, but where the error is ErrOutcomeUnknown.
func (s *Store) write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := s.files.check(); err != nil {
		return err
	}
	tx := s.writer.WithContext(ctx).Begin()
	if tx.Error != nil {
		return classify(tx.Error)
	}
	if err := statements(tx); err != nil {
		_ = tx.Rollback()
		return classify(err)
	}
	if err := commitError(tx.Commit().Error); err != nil {
		return err
	}
	if err := s.files.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return nil
}

// now is the time in UTC in whole microseconds, which every database keeps.
func now() time.Time {
	return time.Now().UTC().Truncate(time.Microsecond)
}
