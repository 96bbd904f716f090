package store

import (
	"database/sql"
	"time"

	"gorm.io/gorm"
)

// Filter selects providers, or what was done with them. The zero value selects all.
type Filter struct {
	// Kind is that of the provider; "" for both.
	Kind Kind
	// Name is that of the provider, or in events of the caller of a token, letter case included; "" for any.
	Name string
	// ClientID is that of the OAuth2 provider, letter case included; "" for any.
	ClientID string
	// CreatedBy is the name of the token that the provider was created with; "" for any.
	CreatedBy string
	// Since is the time from which on the provider was created, or something was done; the zero value for any.
	Since time.Time
}

// isOfProviders tells whether the filter selects nothing but what has to do with providers.
func (f Filter) isOfProviders() bool { return f.Kind != "" || f.ClientID != "" || f.CreatedBy != "" }

// withClientID selects the pks of providers with a client_id, those that were deleted included.
const withClientID = ` IN (SELECT pk FROM oauth2_providers WHERE client_id = @id
	UNION SELECT pk FROM deleted_providers WHERE client_id = @id)`

// where narrows a query to what the filter selects, but for the time. The columns are those of the pk and of who
// created the provider.
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
