package store

import (
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/records"
)

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
