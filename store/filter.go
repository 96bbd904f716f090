package store

import (
	"database/sql"
	"time"

	"gorm.io/gorm"
)

// Filter selects providers or events. The zero value selects all.
type Filter struct {
	// Kind is the kind of provider; "" for both.
	Kind Kind
	// Name is the exact name of the provider or, for events of a token, of the caller; "" for any.
	Name string
	// ClientID is the exact client_id of the OAuth2 provider; "" for any.
	ClientID string
	// CreatedBy is the caller that created the provider; "" for any.
	CreatedBy string
	// Since is the earliest time of the creation or the event; the zero value for any.
	Since time.Time
}

// isOfProviders reports whether the filter selects only events of providers.
func (f Filter) isOfProviders() bool { return f.Kind != "" || f.ClientID != "" || f.CreatedBy != "" }

// withClientID selects the pks of providers, including deleted ones, by client_id.
const withClientID = ` IN (SELECT pk FROM providers WHERE client_id = @id
	UNION SELECT pk FROM deleted_providers WHERE client_id = @id)`

// where applies the filter, except Since, to a query. pk and createdBy name its columns.
func (f Filter) where(query *gorm.DB, pk, createdBy string) *gorm.DB {
	if f.Kind != "" {
		query = query.Where("kind = ?", f.Kind)
	}
	if f.Name != "" {
		query = query.Where("name = ?", f.Name)
	}
	if f.ClientID != "" {
		query = query.Where(pk+withClientID, sql.Named("id", f.ClientID))
	}
	if f.CreatedBy != "" {
		query = query.Where(createdBy+" = ?", f.CreatedBy)
	}
	return query
}
