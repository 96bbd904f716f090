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
				if !yield(one.value, one.damaged) {
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
	return records[0].value, records[0].damaged
}

// ProviderByClientID returns the OAuth2 provider with this client_id, letter case included. It returns ErrNotFound,
// ErrDamaged or ErrUnavailable.
func (s *Store) ProviderByClientID(ctx context.Context, clientID string) (Record, error) {
	var row oauth2Row
	if err := s.reader(ctx).Select("pk").Where("client_id = ?", clientID).First(&row).Error; err != nil {
		return nil, fmt.Errorf("provider with client_id %q: %w", clientID, found(err))
	}
	return s.Provider(ctx, row.PK)
}

// records joins the common rows to the rows of their kinds, and leaves out what was deleted meanwhile.
func (s *Store) records(ctx context.Context, page []Provider) ([]readable[Record], error) {
	pks := map[Kind][]int32{}
	for _, provider := range page {
		pks[provider.Kind] = append(pks[provider.Kind], provider.PK)
	}
	db := s.reader(ctx)
	oauth2Rows, err := rowsOf[oauth2Row](db, pks[KindOAuth2])
	if err != nil {
		return nil, err
	}
	directoryRows, err := rowsOf[workspaceDirectoryRow](db, pks[KindWorkspaceDirectory])
	if err != nil {
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
	read := make(map[int32]readable[Record], len(page))
	for _, row := range oauth2Rows {
		settings, err := row.value.unseal(keys)
		pk := row.value.PK
		read[pk] = readable[Record]{
			OAuth2Provider{Provider: providers[pk], OAuth2Settings: settings}, damage(pk, row.damaged, err),
		}
	}
	for _, row := range directoryRows {
		settings, err := row.value.unseal(keys)
		pk := row.value.PK
		read[pk] = readable[Record]{
			WorkspaceDirectoryProvider{Provider: providers[pk], WorkspaceDirectorySettings: settings},
			damage(pk, row.damaged, err),
		}
	}
	return s.inOrderOf(ctx, page, read)
}

// damage is what is wrong with a provider: with its row, or else with its secret.
func damage(pk int32, ofRow, ofSecret error) error {
	if ofRow != nil {
		return fmt.Errorf("provider %d: %w", pk, ofRow)
	}
	return ofSecret
}

// inOrderOf returns the records of a page of providers. One without a row of its kind was deleted meanwhile, or is
// damaged.
func (s *Store) inOrderOf(
	ctx context.Context, page []Provider, read map[int32]readable[Record],
) ([]readable[Record], error) {
	var records []readable[Record]
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
			one.value = nil
		}
		records = append(records, one)
	}
	return records, nil
}

// rowsOf reads the rows of providers of one kind.
func rowsOf[Row any](db *gorm.DB, pks []int32) ([]readable[Row], error) {
	if len(pks) == 0 {
		return nil, nil
	}
	rows, err := readRows[Row](db.Where("pk IN ?", pks))
	if err != nil {
		return nil, fmt.Errorf("read rows of providers: %w", err)
	}
	return rows, nil
}
