package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// CreateOAuth2Provider stores a provider and returns the record, which is then on disk.
//
// It returns ErrClientIDTaken or ErrUnavailable; nothing is stored then.
func (s *Store) CreateOAuth2Provider(
	ctx context.Context, creation Creation, settings OAuth2Settings,
) (OAuth2Provider, error) {
	record := OAuth2Provider{Provider: newProvider(KindOAuth2, creation), OAuth2Settings: settings}
	err := s.write(ctx, func(tx *gorm.DB) error {
		return insert(tx, &record.Provider, func(pk int32) any { return &oauth2Row{PK: pk, OAuth2Settings: settings} })
	})
	if isDuplicate(err) {
		err = ErrClientIDTaken
	}
	if err != nil {
		return OAuth2Provider{}, fmt.Errorf("create OAuth2 provider: %w", err)
	}
	return record, nil
}

// CreateWorkspaceDirectoryProvider stores a provider and returns the record, which is then on disk.
//
// It returns ErrUnavailable; nothing is stored then.
func (s *Store) CreateWorkspaceDirectoryProvider(
	ctx context.Context, creation Creation, settings WorkspaceDirectorySettings,
) (WorkspaceDirectoryProvider, error) {
	record := WorkspaceDirectoryProvider{
		Provider:                   newProvider(KindWorkspaceDirectory, creation),
		WorkspaceDirectorySettings: settings,
	}
	err := s.write(ctx, func(tx *gorm.DB) error {
		return insert(tx, &record.Provider, func(pk int32) any {
			return &workspaceDirectoryRow{PK: pk, WorkspaceDirectorySettings: settings}
		})
	})
	if err != nil {
		return WorkspaceDirectoryProvider{}, fmt.Errorf("create workspace directory provider: %w", err)
	}
	return record, nil
}

func newProvider(kind Kind, creation Creation) Provider {
	return Provider{
		Kind:      kind,
		Name:      creation.Name,
		CreatedAt: now(),
		CreatedBy: creation.CreatedBy,
		RequestID: creation.RequestID,
	}
}

// insert writes the common row first, because the row of the kind takes its pk.
func insert(tx *gorm.DB, common *Provider, row func(pk int32) any) error {
	if err := tx.Omit("Application", "Backchannel").Create(common).Error; err != nil {
		return err
	}
	return tx.Create(row(common.PK)).Error
}

// now is the time in UTC in whole microseconds, which every database keeps.
func now() time.Time {
	return time.Now().UTC().Truncate(time.Microsecond)
}
