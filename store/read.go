package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/keyset"
	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
)

// placeOf returns where the secret of a record is sealed for.
func placeOf(common Provider) seal.Place {
	return seal.Place{Row: common.UID, Value: "providers.secret", Kind: string(common.Kind), PK: common.PK}
}

// Open returns the record with its secret. If the secret does not open, it reads the record and the keys again: the
// secret may have been sealed with a key that is newer than those in memory, or resealed and its key removed in the
// meantime. It returns ErrDamaged or ErrUnavailable.
func (s *Store) Open(ctx context.Context, record Record) (Record, error) {
	reader := s.reader(ctx)
	keys, err := s.Keys.Current(reader)
	if err != nil {
		return nil, err
	}
	if opened, err := open(keys, record); err == nil {
		return opened, nil
	}
	return s.openedIn(reader.Where("pk = ?", record.Common().PK))
}

// Opened returns records with their secrets. For one that does not open it yields ErrDamaged.
func (s *Store) Opened(ctx context.Context, records iter.Seq2[Record, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for record, err := range records {
			if err == nil {
				record, err = s.Open(ctx, record)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// open returns a record with its secret, or ErrDamaged.
func open(keys *keyset.Loaded, record Record) (Record, error) {
	common := record.Common()
	secret, err := keys.Unseal(common.Sealed, placeOf(common))
	if err != nil {
		return nil, err
	}
	return record.with(common, secret), nil
}

// Providers returns the selected providers whose pk is greater than after, ordered by pk, without their secrets.
// For a damaged one it yields ErrDamaged and continues. On ErrUnavailable the sequence ends.
func (s *Store) Providers(ctx context.Context, filter Filter, after int64) iter.Seq2[Record, error] {
	return rows.Values(rows.Pages(func(last *rows.Row[Record]) ([]rows.Row[Record], error) {
		from := after
		if last != nil {
			from = last.Value.Common().PK
		}
		return recordsIn(filter.where(s.reader(ctx)).Where("pk > ?", from).Order("pk").Limit(rows.PageSize))
	}))
}

// Provider returns the provider with this pk, with its secret. It returns ErrNotFound, ErrDamaged or ErrUnavailable.
func (s *Store) Provider(ctx context.Context, pk int64) (Record, error) {
	record, err := s.openedIn(s.reader(ctx).Where("pk = ?", pk))
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("provider %d: %w", pk, err)
	}
	return record, err
}

// ProviderByClientID returns the OAuth2 provider with exactly this client_id. It returns the errors of Provider.
func (s *Store) ProviderByClientID(ctx context.Context, clientID string) (Record, error) {
	record, err := s.openedIn(s.reader(ctx).Where("client_id = ?", clientID))
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("provider with client_id %q: %w", clientID, err)
	}
	return record, err
}

// Identity is what identifies a provider.
type Identity struct {
	PK                       int64
	Kind                     Kind
	Name, CreatedBy          string
	IdempotencyKey, ClientID *string
}

// Identities returns the identities of the providers that the filter selects, in any order, and at most limit. It
// returns ErrUnavailable.
func (s *Store) Identities(ctx context.Context, filter Filter, limit int) (list []Identity, err error) {
	query := filter.where(s.reader(ctx).Table(providersTable)).Limit(limit)
	query = query.Select("pk, kind, name, created_by, idempotency_key, client_id")
	if err := query.Scan(&list).Error; err != nil {
		return nil, fmt.Errorf("read providers: %w", err)
	}
	return list, nil
}

// Versions returns the versions of providers by pk. A version changes when a provider does, or is resealed. It returns
// ErrUnavailable.
func (s *Store) Versions(ctx context.Context, pks []int64) (map[int64]string, error) {
	versions := make(map[int64]string, len(pks))
	for chunk := range slices.Chunk(pks, rows.PageSize) {
		if err := addVersions(s.reader(ctx).Where("pk IN ?", chunk), versions); err != nil {
			return nil, fmt.Errorf("read versions: %w", err)
		}
	}
	return versions, nil
}

// addVersions adds hashes of all values of the rows that a query selects.
func addVersions(query *gorm.DB, versions map[int64]string) error {
	columns := append([]string{pkColumn}, newInserter(nil, nil).columns...)
	query = query.Table(providersTable).Select(columns)
	_, err := rows.Read(query, func(into func(any) error) (none struct{}, err error) {
		row, sum := map[string]any{}, sha256.New()
		err = into(&row)
		// Maps are printed in the order of their keys.
		_, _ = fmt.Fprintf(sum, "%q", row)
		pk, _ := row[pkColumn].(int64)
		versions[pk] = string(sum.Sum(nil))
		return none, err
	})
	return err
}

// openedIn returns the record that a query selects, with its secret. If the secret does not open, it reads record and
// keys again: a reseal can end between the two statements, but hardly twice in a row. It returns ErrNotFound,
// ErrDamaged or ErrUnavailable.
func (s *Store) openedIn(query *gorm.DB) (Record, error) {
	newest := s.Keys.Current
	for try := 0; ; try++ {
		records, err := recordsIn(query.Session(&gorm.Session{}).Limit(1))
		switch {
		case err != nil:
			return nil, err
		case len(records) == 0:
			return nil, ErrNotFound
		case records[0].Damaged != nil:
			return nil, records[0].Damaged
		}
		keys, err := newest(query.Session(&gorm.Session{NewDB: true}))
		if err != nil {
			return nil, err
		}
		if record, err := open(keys, records[0].Value); err == nil || try == 3 {
			return record, err
		}
		newest = s.Keys.Latest
	}
}

// recordsIn returns the records that a query selects, with their applications.
func recordsIn(query *gorm.DB) ([]rows.Row[Record], error) {
	records, err := rows.Read(withDefaults(query.Model(&Provider{})), scanRecord)
	if err != nil {
		return nil, fmt.Errorf("read providers: %w", err)
	}
	commons := make([]Provider, len(records))
	for i, record := range records {
		commons[i] = record.Value.Common()
	}
	if err := addApplications(query.Session(&gorm.Session{NewDB: true}), commons); err != nil {
		return nil, err
	}
	for i, common := range commons {
		records[i].Value = records[i].Value.with(common, seal.Secret{})
	}
	return records, nil
}

// row is a row of either kind. The column that both kinds have is scanned into OAuth2Settings.
type row struct {
	Provider                   `gorm:"embedded"`
	OAuth2Settings             `gorm:"embedded"`
	WorkspaceDirectorySettings `gorm:"embedded"`
}

// scanRecord scans a record of either kind. The error of a damaged one names it.
func scanRecord(into func(model any) error) (record Record, err error) {
	var row row
	err = into(&row)
	if row.Kind == KindWorkspaceDirectory {
		row.WorkspaceDirectorySettings.PropertyMappings = row.OAuth2Settings.PropertyMappings
		record = WorkspaceDirectoryProvider{row.Provider, row.WorkspaceDirectorySettings}
	} else {
		record = OAuth2Provider{row.Provider, row.OAuth2Settings}
	}
	if invalid := checkTexts(record.settings(visitor{columns: row.columns()})); err == nil && invalid != nil {
		err = &rows.DamagedError{Cause: invalid}
	}
	if err != nil {
		return record, fmt.Errorf("provider %d: %w", row.PK, err)
	}
	return record, nil
}

const selectLinks = `SELECT applications.*, provider_pk AS served_by, 1 = 0 AS is_backchannel FROM applications
	WHERE provider_pk IN ?
	UNION ALL SELECT applications.*, backchannels.provider_pk, 1 = 1 FROM backchannels
	JOIN applications ON applications.id = application_id WHERE backchannels.provider_pk IN ?`

// addApplications adds the applications that providers serve.
func addApplications(tx *gorm.DB, providers []Provider) error {
	if len(providers) == 0 {
		return nil
	}
	pks := make([]int64, len(providers))
	for i, provider := range providers {
		pks[i] = provider.PK
	}
	var links []struct {
		Application   `gorm:"embedded"`
		ServedBy      int64
		IsBackchannel bool
	}
	if err := tx.Raw(selectLinks, pks, pks).Scan(&links).Error; err != nil {
		return fmt.Errorf("read applications: %w", err)
	}
	at := map[int64]*Provider{}
	for i := range providers {
		at[providers[i].PK] = &providers[i]
	}
	for _, link := range links {
		if link.IsBackchannel {
			at[link.ServedBy].Backchannel = Backchannel{link.ServedBy, link.ID, link.Application}
		} else {
			at[link.ServedBy].Application = link.Application
		}
	}
	return nil
}
