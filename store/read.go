package store

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// Providers returns the providers with a pk above after that the filter selects, ordered by pk. For a damaged one it
// yields ErrDamaged and continues. On ErrUnavailable the sequence ends.
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
			for _, record := range records {
				if !yield(record.value, record.damaged) {
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

// ProviderByClientID returns the OAuth2 provider with exactly this client_id. It returns ErrNotFound, ErrDamaged or
// ErrUnavailable.
func (s *Store) ProviderByClientID(ctx context.Context, clientID string) (Record, error) {
	pk, err := s.PKOfClientID(ctx, clientID)
	if err != nil {
		return nil, err
	}
	return s.Provider(ctx, pk)
}

// PKOfClientID returns the pk of the OAuth2 provider with exactly this client_id. It returns ErrNotFound or
// ErrUnavailable.
func (s *Store) PKOfClientID(ctx context.Context, clientID string) (int32, error) {
	var row oauth2Row
	if err := s.reader(ctx).Select("pk").Where("client_id = ?", clientID).First(&row).Error; err != nil {
		return 0, fmt.Errorf("provider with client_id %q: %w", clientID, found(err))
	}
	return row.PK, nil
}

// records adds the settings to the common rows of providers. Providers deleted in the meantime are left out.
func (s *Store) records(ctx context.Context, page []Provider) ([]readable[Record], error) {
	read, err := s.recordsByPK(ctx, page)
	if err != nil {
		return nil, err
	}
	var records []readable[Record]
	for _, provider := range page {
		if record, ok := read[provider.PK]; ok {
			records = append(records, record)
		}
	}
	return records, nil
}

func (s *Store) recordsByPK(ctx context.Context, page []Provider) (map[int32]readable[Record], error) {
	read := make(map[int32]readable[Record], len(page))
	if err := readKind[oauth2Row](ctx, s, ofKind(page, KindOAuth2), read); err != nil {
		return nil, err
	}
	if err := readKind[workspaceDirectoryRow](ctx, s, ofKind(page, KindWorkspaceDirectory), read); err != nil {
		return nil, err
	}
	for _, provider := range page {
		if _, ok := read[provider.PK]; ok {
			continue
		}
		var remaining []Creation
		if err := s.reader(ctx).Select("pk").Find(&remaining, provider.PK).Error; err != nil {
			return nil, fmt.Errorf("find provider %d: %w", provider.PK, err)
		}
		if len(remaining) > 0 {
			damaged := fmt.Errorf("provider %d has no settings: %w", provider.PK, ErrDamaged)
			read[provider.PK] = readable[Record]{damaged: damaged}
		}
	}
	return read, nil
}

// ofKind returns the providers of one kind by pk.
func ofKind(page []Provider, kind Kind) map[int32]Provider {
	providers := map[int32]Provider{}
	for _, provider := range page {
		if provider.Kind == kind {
			providers[provider.PK] = provider
		}
	}
	return providers
}

// readKind adds the records of providers of one kind, or why they cannot be read. If a secret does not open, it reads
// the keys and all rows again: the secret may have been sealed with a key that is newer than those in memory, or
// resealed and its key removed in the meantime.
func readKind[Row kindRow](
	ctx context.Context, s *Store, providers map[int32]Provider, read map[int32]readable[Record],
) error {
	if len(providers) == 0 {
		return nil
	}
	isDamaged, err := readRecords[Row](ctx, s, s.keys.current, providers, read)
	// A reseal can end between reading the rows and the keys, but hardly twice in a row.
	for try := 0; err == nil && isDamaged && try < 2; try++ {
		isDamaged, err = readRecords[Row](ctx, s, s.keys.load, providers, read)
	}
	return err
}

// readRecords is one attempt of readKind.
func readRecords[Row kindRow](
	ctx context.Context, s *Store, keysOf func(*gorm.DB) (*seal.Keys, error), providers map[int32]Provider,
	read map[int32]readable[Record],
) (isDamaged bool, err error) {
	reader := s.reader(ctx)
	rows, err := readRows[Row](reader.Where("pk IN ?", slices.Sorted(maps.Keys(providers))))
	if err != nil {
		return false, fmt.Errorf("read settings of providers: %w", err)
	}
	keys, err := keysOf(reader)
	if err != nil {
		return false, err
	}
	return addRecords(rows, keys, providers, read), nil
}

// addRecords adds the records of rows, or why they cannot be read.
func addRecords[Row kindRow](
	rows []readable[Row], keys *seal.Keys, providers map[int32]Provider, read map[int32]readable[Record],
) (isDamaged bool) {
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
	return isDamaged
}
