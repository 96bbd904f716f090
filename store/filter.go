package store

import (
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Filter selects providers. The zero value selects all.
type Filter struct {
	// Kind is the kind of provider; "" for both.
	Kind Kind
	// Name is the exact name; "" for any.
	Name string
	// ClientID is the exact client_id of the OAuth2 provider; "" for any.
	ClientID string
	// CreatedBy is the caller that created the provider; "" for any.
	CreatedBy string
	// Since is the earliest time of the creation; the zero value for any.
	Since time.Time
}

func (f Filter) where(query *gorm.DB) *gorm.DB {
	if f.Kind != "" {
		query = query.Where("kind = ?", f.Kind)
	}
	if f.Name != "" {
		query = query.Where("name = ?", f.Name)
	}
	if f.ClientID != "" {
		query = query.Where("client_id = ?", f.ClientID)
	}
	if f.CreatedBy != "" {
		query = query.Where("created_by = ?", f.CreatedBy)
	}
	if !f.Since.IsZero() {
		query = query.Where("created_at >= ?", database.TimeOf(f.Since))
	}
	return query
}
