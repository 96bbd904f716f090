package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/records"
	"example.com/providerd/store/rows"
)

// Reader reads the providers of a database, or of a transaction.
type Reader struct {
	database database.Database
	keys     *keyset.Keys
	// transaction is nil outside of Change.
	transaction *gorm.DB
}

// open returns the record with its secret. If that does not open, it reads the record and the keys again: the key may
// be newer than those in memory, or removed after a reseal.
func (r Reader) open(ctx context.Context, record records.Record) (records.Record, error) {
	keys, err := r.keys.Current(r.reader(ctx))
	if err != nil {
		return nil, err
	}
	if opened, err := records.Unseal(keys.Keys, record); err == nil {
		return opened, nil
	}
	return r.Get(ctx, record.Common().PK)
}

// Opened returns records with their secrets. It yields ErrDamaged for one that does not open, and ErrUnavailable.
func (r Reader) Opened(
	ctx context.Context, sealed iter.Seq2[records.Record, error],
) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		for record, err := range sealed {
			if err == nil {
				record, err = r.open(ctx, record)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// List returns the selected providers whose pk is greater than after, ordered by pk, without their secrets.
// For a damaged one it yields ErrDamaged and continues. On ErrUnavailable the sequence ends.
func (r Reader) List(ctx context.Context, filter Filter, after int64) iter.Seq2[records.Record, error] {
	selected := filter.where(r.reader(ctx))
	return rows.Values(rows.Pages(selected, records.PKColumn, after, records.KeyOf, records.Read))
}

// Get returns the provider with this pk, with its secret. It returns ErrNotFound, ErrDamaged or ErrUnavailable.
func (r Reader) Get(ctx context.Context, pk int64) (records.Record, error) {
	return r.openedIn(r.reader(ctx).Where("pk = ?", pk), fmt.Sprint("provider ", pk))
}

// ByClientID returns the OAuth2 provider with exactly this client_id. It returns the errors of Get.
func (r Reader) ByClientID(ctx context.Context, clientID string) (records.Record, error) {
	query := r.reader(ctx).Where("client_id = ?", clientID)
	return r.openedIn(query, fmt.Sprintf("provider with client_id %q", clientID))
}

// Identity is what identifies a provider.
type Identity struct {
	PK                       int64
	Kind                     records.Kind
	Name, CreatedBy          string
	IdempotencyKey, ClientID *string
}

// Identities returns the identities of selected providers, in any order and at most limit, or ErrUnavailable.
func (r Reader) Identities(ctx context.Context, filter Filter, limit int) (list []Identity, err error) {
	query := filter.where(r.reader(ctx).Table(records.Table)).Limit(limit)
	query = query.Select("pk, kind, name, created_by, idempotency_key, client_id")
	err = query.Scan(&list).Error
	return list, database.Wrap("read providers", err)
}

// Versions returns versions of providers by pk, which change with the provider and its seal, or ErrUnavailable.
func (r Reader) Versions(ctx context.Context, pks []int64) (map[int64]string, error) {
	versions := make(map[int64]string, len(pks))
	for chunk := range slices.Chunk(pks, rows.PageSize) {
		if err := addVersions(r.reader(ctx).Where("pk IN ?", chunk), versions); err != nil {
			return nil, fmt.Errorf("read versions: %w", err)
		}
	}
	return versions, nil
}

// Deletable returns the providers with these pks, ordered by pk, without their settings, which may be damaged. It
// returns the errors of Delete.
func (r Reader) Deletable(ctx context.Context, pks []int64) ([]records.Provider, error) {
	// A violated constraint would report neither which providers cannot be deleted nor why.
	tx := r.reader(ctx)
	var providers []records.Provider
	for chunk := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(pks))), rows.PageSize) {
		var page []records.Provider
		if err := tx.Where("pk IN ?", chunk).Order("pk").Find(&page).Error; err != nil {
			return nil, fmt.Errorf("read providers: %w", err)
		}
		if err := records.AddApplications(tx, page); err != nil {
			return nil, err
		}
		providers = append(providers, page...)
	}
	found := map[int64]bool{}
	var missing, linked []error
	for _, provider := range providers {
		found[provider.PK] = true
		for flag, application := range map[string]records.Application{
			"provider": provider.Application, "backchannel": provider.Backchannel.Application,
		} {
			if application.ID != 0 {
				linked = append(linked, fmt.Errorf(`provider %d: %w: %s; run "providerd application unlink %[3]s --%s %[1]d" first`,
					provider.PK, ErrProviderInUse, application.Slug, flag))
			}
		}
	}
	for _, pk := range pks {
		if !found[pk] {
			missing = append(missing, fmt.Errorf("provider %d: %w", pk, ErrNotFound))
		}
	}
	return providers, errors.Join(append(missing, linked...)...)
}

// addVersions adds hashes of all values of the rows that a query selects.
func addVersions(query *gorm.DB, versions map[int64]string) error {
	columns := append([]string{records.PKColumn}, newInserter(nil, nil).columns...)
	query = query.Table(records.Table).Select(columns)
	var invalid error
	_, err := rows.Read(query, func(into func(any) error) (none struct{}, err error) {
		row := map[string]any{}
		err = into(&row)
		// JSON has the columns in the order of their names.
		text, failed := json.Marshal(row)
		sum := sha256.Sum256(text)
		pk, _ := row[records.PKColumn].(int64)
		versions[pk], invalid = string(sum[:]), errors.Join(invalid, failed)
		return none, err
	})
	return errors.Join(err, invalid)
}

// openedIn returns the record that a query selects, with its secret. If the secret does not open, it reads record and
// keys again: a reseal can end between the two statements, but hardly twice in a row. It returns ErrNotFound, with a
// name of the record, ErrDamaged or ErrUnavailable.
func (r Reader) openedIn(query *gorm.DB, name string) (records.Record, error) {
	newest := r.keys.Current
	for try := 0; ; try++ {
		found, err := records.Read(query.Session(&gorm.Session{}).Limit(1))
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, fmt.Errorf("%s: %w", name, ErrNotFound)
		case found[0].Damaged != nil:
			return nil, found[0].Damaged
		}
		keys, err := newest(query.Session(&gorm.Session{NewDB: true}))
		if err != nil {
			return nil, err
		}
		if record, err := records.Unseal(keys.Keys, found[0].Value); err == nil || try == 3 {
			return record, err
		}
		newest = r.keys.Latest
	}
}

func (r Reader) reader(ctx context.Context) *gorm.DB {
	if r.transaction != nil {
		return r.transaction
	}
	return r.database.Reader().WithContext(ctx)
}

// Filter selects providers. The zero value selects all.
type Filter struct {
	// Kind is the kind of provider; "" for both.
	Kind records.Kind
	// Name is the exact name; "" for any.
	Name string
	// ClientID is the exact client_id of the OAuth2 provider; "" for any.
	ClientID string
	// PKs and ClientIDs are exact values; nil for any. Pass at most 1,000.
	PKs       []int64
	ClientIDs []string
	// IdempotencyKeys are at most 1,000 keys of CreatedBy and Kind; nil for any. With keys, other conditions do not count.
	IdempotencyKeys []string
	// KeyPattern is a pattern of LIKE for the idempotency key; "" for any.
	KeyPattern string
	// CreatedBy is the caller that created the provider; "" for any.
	CreatedBy string
	// Since is the earliest time of the creation; the zero value for any.
	Since time.Time
}

func (f Filter) where(query *gorm.DB) *gorm.DB {
	if f.IdempotencyKeys != nil {
		return f.whereKeys(query)
	}
	// Zero values are no conditions.
	query = query.Where(&records.OAuth2Provider{
		Provider:       records.Provider{Kind: f.Kind, Name: f.Name, CreatedBy: f.CreatedBy},
		OAuth2Settings: records.OAuth2Settings{ClientID: f.ClientID},
	})
	if !f.Since.IsZero() {
		query = query.Where("created_at >= ?", database.TimeOf(f.Since))
	}
	if f.KeyPattern != "" {
		query = query.Where("idempotency_key LIKE ?", f.KeyPattern)
	}
	if f.PKs != nil {
		query = query.Where("pk IN ?", f.PKs)
	}
	if f.ClientIDs != nil {
		query = query.Where("client_id IN ?", f.ClientIDs)
	}
	return query
}

// whereKeys selects the keys as findMet does. PostgreSQL, which may not know how many records a caller has, would
// compare each of them with each key of a list.
func (f Filter) whereKeys(query *gorm.DB) *gorm.DB {
	var keys []any
	for _, key := range f.IdempotencyKeys {
		keys = append(keys, f.CreatedBy, f.Kind, key)
	}
	values := "(?, ?, ?)" + strings.Repeat(", (?, ?, ?)", len(f.IdempotencyKeys)-1)
	return query.Joins("JOIN (VALUES "+values+") AS keys "+
		"ON created_by = column1 AND kind = column2 AND idempotency_key = column3", keys...)
}
