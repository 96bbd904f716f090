package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gorm.io/gorm"
)

// pageSize is how many providers are in memory at a time while all are read.
const pageSize = 500

// Providers returns all providers in the order of their pk. An error, which is ErrUnavailable or
// ErrDamaged, ends the sequence.
func (s *Store) Providers(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for last := int32(0); ; {
			var page []Provider
			err := withApplications(s.reader.WithContext(ctx)).
				Where("pk > ?", last).Order("pk").Limit(pageSize).Find(&page).Error
			if err != nil {
				yield(nil, fmt.Errorf("read providers: %w", classify(err)))
				return
			}
			records, err := s.records(ctx, page)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last = page[len(page)-1].PK
		}
	}
}

// Provider returns the provider with this pk. It returns ErrNotFound, ErrDamaged or ErrUnavailable.
func (s *Store) Provider(ctx context.Context, pk int32) (Record, error) {
	var provider Provider
	if err := withApplications(s.reader.WithContext(ctx)).First(&provider, pk).Error; err != nil {
		return nil, fmt.Errorf("provider %d: %w", pk, classify(err))
	}
	records, err := s.records(ctx, []Provider{provider})
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

// ProviderByClientID returns the OAuth2 provider with this client_id, letter case included. It returns ErrNotFound,
// ErrDamaged or ErrUnavailable.
func (s *Store) ProviderByClientID(ctx context.Context, clientID string) (Record, error) {
	var row oauth2Row
	if err := s.reader.WithContext(ctx).Where("client_id = ?", clientID).First(&row).Error; err != nil {
		return nil, fmt.Errorf("provider with client_id %q: %w", clientID, classify(err))
	}
	return s.Provider(ctx, row.PK)
}

// records joins the common rows to the rows of their kinds.
func (s *Store) records(ctx context.Context, page []Provider) ([]Record, error) {
	pks := map[Kind][]int32{}
	for _, provider := range page {
		pks[provider.Kind] = append(pks[provider.Kind], provider.PK)
	}
	var oauth2Rows []oauth2Row
	var directoryRows []workspaceDirectoryRow
	db := s.reader.WithContext(ctx)
	if err := findAll(db, &oauth2Rows, pks[KindOAuth2]); err != nil {
		return nil, err
	}
	if err := findAll(db, &directoryRows, pks[KindWorkspaceDirectory]); err != nil {
		return nil, err
	}
	keys, err := s.keyring.current()
	if err != nil {
		return nil, errors.Join(ErrUnavailable, err)
	}
	oauth2 := make(map[int32]OAuth2Settings, len(oauth2Rows))
	for _, row := range oauth2Rows {
		if oauth2[row.PK], err = row.unseal(keys); err != nil {
			return nil, err
		}
	}
	directory := make(map[int32]WorkspaceDirectorySettings, len(directoryRows))
	for _, row := range directoryRows {
		if directory[row.PK], err = row.unseal(keys); err != nil {
			return nil, err
		}
	}
	records := make([]Record, len(page))
	for i, provider := range page {
		if provider.Kind == KindOAuth2 {
			records[i] = OAuth2Provider{Provider: provider, OAuth2Settings: oauth2[provider.PK]}
			continue
		}
		records[i] = WorkspaceDirectoryProvider{
			Provider: provider, WorkspaceDirectorySettings: directory[provider.PK],
		}
	}
	return records, nil
}

func findAll(db *gorm.DB, rows any, pks []int32) error {
	if len(pks) == 0 {
		return nil
	}
	if err := db.Where("pk IN ?", pks).Find(rows).Error; err != nil {
		return fmt.Errorf("read rows of providers: %w", classify(err))
	}
	return nil
}
