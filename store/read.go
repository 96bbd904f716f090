package store

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
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
	read := make(map[int32]readable[Record], len(page))
	if err := readKind[oauth2Row](ctx, s, ofKind(page, KindOAuth2), read); err != nil {
		return nil, err
	}
	if err := readKind[workspaceDirectoryRow](ctx, s, ofKind(page, KindWorkspaceDirectory), read); err != nil {
		return nil, err
	}
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
		records = append(records, one)
	}
	return records, nil
}

// ofKind returns the providers of one kind by their pk.
func ofKind(page []Provider, kind Kind) map[int32]Provider {
	providers := map[int32]Provider{}
	for _, provider := range page {
		if provider.Kind == kind {
			providers[provider.PK] = provider
		}
	}
	return providers
}

// readKind adds the records of providers of one kind, or what is wrong with them: the row, or else its secret. Where
// one does not open, all are read once more: since it was read, it may have been resealed, and its key retired.
func readKind[Row kindRow](
	ctx context.Context, s *Store, providers map[int32]Provider, read map[int32]readable[Record],
) error {
	if len(providers) == 0 {
		return nil
	}
	isDamaged, err := readRecords[Row](ctx, s, providers, read)
	if err == nil && isDamaged {
		_, err = readRecords[Row](ctx, s, providers, read)
	}
	return err
}

// readRecords is one try of readKind.
func readRecords[Row kindRow](
	ctx context.Context, s *Store, providers map[int32]Provider, read map[int32]readable[Record],
) (isDamaged bool, err error) {
	rows, err := readRows[Row](s.reader(ctx).Where("pk IN ?", slices.Sorted(maps.Keys(providers))))
	if err != nil {
		return false, fmt.Errorf("read rows of providers: %w", err)
	}
	// Read after the rows, the keyset has every key that was added to seal them.
	keys, err := s.keyring.Current(ctx)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, row := range rows {
		pk := row.value.pk()
		record, err := row.value.record(providers[pk], keys)
		if row.damaged != nil {
			err = fmt.Errorf("provider %d: %w", pk, row.damaged)
		}
		if err != nil {
			record, isDamaged = nil, true
		}
		read[pk] = readable[Record]{record, err}
	}
	return isDamaged, nil
}
