package store

import (
	"context"
	"fmt"
	"iter"

	"gorm.io/gorm"
)

// Providers returns the providers behind a pk that the filter selects, in the order of their pk. ErrDamaged, which
// names its provider, stands in the place of one record. Any other error, which is ErrUnavailable, ends the sequence.
func (s *Store) Providers(ctx context.Context, filter Filter, after int32) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for last := after; ; {
			query := filter.where(withApplications(s.reader(ctx)), "pk", "created_by")
			if !filter.Since.IsZero() {
				query = query.Where("created_at >= ?", filter.Since.UTC())
			}
			var page []Provider
			if err := query.Where("pk > ?", last).Order("pk").Limit(pageSize).Find(&page).Error; err != nil {
				yield(nil, fmt.Errorf("read providers: %w", found(err)))
				return
			}
			records, err := s.records(ctx, page)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, one := range records {
				if !yield(one.record, one.damaged) {
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
	if err := withApplications(s.reader(ctx)).First(&provider, pk).Error; err != nil {
		return nil, fmt.Errorf("provider %d: %w", pk, found(err))
	}
	records, err := s.records(ctx, []Provider{provider})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("provider %d: %w", pk, ErrNotFound)
	}
	return records[0].record, records[0].damaged
}

// ProviderByClientID returns the OAuth2 provider with this client_id, letter case included. It returns ErrNotFound,
// ErrDamaged or ErrUnavailable.
func (s *Store) ProviderByClientID(ctx context.Context, clientID string) (Record, error) {
	var row oauth2Row
	if err := s.reader(ctx).Where("client_id = ?", clientID).First(&row).Error; err != nil {
		return nil, fmt.Errorf("provider with client_id %q: %w", clientID, found(err))
	}
	return s.Provider(ctx, row.PK)
}

// readRecord is a record, or why it cannot be read.
type readRecord struct {
	record  Record
	damaged error
}

// records joins the common rows to the rows of their kinds, and leaves out what was deleted meanwhile.
func (s *Store) records(ctx context.Context, page []Provider) ([]readRecord, error) {
	pks := map[Kind][]int32{}
	for _, provider := range page {
		pks[provider.Kind] = append(pks[provider.Kind], provider.PK)
	}
	var oauth2Rows []oauth2Row
	var directoryRows []workspaceDirectoryRow
	db := s.reader(ctx)
	if err := findAll(db, &oauth2Rows, pks[KindOAuth2]); err != nil {
		return nil, err
	}
	if err := findAll(db, &directoryRows, pks[KindWorkspaceDirectory]); err != nil {
		return nil, err
	}
	keys, err := s.keyring.Current()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	providers := make(map[int32]Provider, len(page))
	for _, provider := range page {
		providers[provider.PK] = provider
	}
	read := make(map[int32]readRecord, len(page))
	for _, row := range oauth2Rows {
		settings, err := row.unseal(keys)
		read[row.PK] = readRecord{OAuth2Provider{Provider: providers[row.PK], OAuth2Settings: settings}, err}
	}
	for _, row := range directoryRows {
		settings, err := row.unseal(keys)
		read[row.PK] = readRecord{
			WorkspaceDirectoryProvider{Provider: providers[row.PK], WorkspaceDirectorySettings: settings}, err,
		}
	}
	return s.inOrderOf(ctx, page, read)
}

// inOrderOf returns the records of a page of providers. One without a row of its kind was deleted meanwhile, or is
// damaged.
func (s *Store) inOrderOf(ctx context.Context, page []Provider, read map[int32]readRecord) ([]readRecord, error) {
	var records []readRecord
	for _, provider := range page {
		one, ok := read[provider.PK]
		if !ok {
			var still []Creation
			if err := s.reader(ctx).Select("pk").Find(&still, provider.PK).Error; err != nil {
				return nil, fmt.Errorf("look for provider %d: %w", provider.PK, err)
			}
			if len(still) == 0 {
				continue
			}
			one.damaged = fmt.Errorf("provider %d has no settings: %w", provider.PK, ErrDamaged)
		}
		if one.damaged != nil {
			one.record = nil
		}
		records = append(records, one)
	}
	return records, nil
}

func findAll(db *gorm.DB, rows any, pks []int32) error {
	if len(pks) == 0 {
		return nil
	}
	if err := db.Where("pk IN ?", pks).Find(rows).Error; err != nil {
		return fmt.Errorf("read rows of providers: %w", found(err))
	}
	return nil
}
