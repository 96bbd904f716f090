package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// TokenExpiry is when callers are left without a valid token. The newest token of a caller counts.
type TokenExpiry struct {
	// First is when the first caller that has a valid token is left without one; the zero value if no caller has one.
	First time.Time
	// Callers is the number of callers that are left without one before the given time.
	Callers int64
}

// TokenExpiry returns when callers are left without a valid token, and how many before a time. It returns
// ErrUnavailable.
func (s *Store) TokenExpiry(ctx context.Context, before time.Time) (expiry TokenExpiry, err error) {
	at, reader := now(), s.reader(ctx)
	newest := activeTokens(reader, at).Select("name, max(expires_at)").Group("name")
	var first []Token
	err = activeTokens(reader, at).Select("id", "expires_at").Where("(name, expires_at) IN (?)", newest).
		Order("expires_at").Limit(1).Find(&first).Error
	if err != nil {
		return expiry, fmt.Errorf("read expiry of tokens: %w", err)
	}
	if len(first) > 0 {
		expiry.First = first[0].ExpiresAt
	}
	ending := activeTokens(reader, at).Select("name").Group("name").Having("max(expires_at) < ?", before.UTC())
	if err := reader.Table("(?) AS ending", ending).Count(&expiry.Callers).Error; err != nil {
		return expiry, fmt.Errorf("count callers: %w", err)
	}
	return expiry, nil
}

// activeTokens selects the tokens that are valid at a time. SQLite stores times as text, which sorts correctly because
// all are in UTC.
func activeTokens(tx *gorm.DB, at time.Time) *gorm.DB {
	return tx.Model(&Token{}).Where("revoked_at IS NULL AND expires_at > ?", at.UTC())
}

// NewestKeyCreated returns when the newest key of the keyset was created; the zero value if that is not recorded. It
// returns ErrNoKeyset, ErrKeysetUnusable or ErrUnavailable.
func (s *Store) NewestKeyCreated(ctx context.Context) (time.Time, error) {
	keys, err := s.keyring.Current(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read keyset: %w", err)
	}
	ids := keys.IDs()
	return keyCreated(s.reader(ctx), ids[len(ids)-1])
}

// keyCreated returns when a key was added to the keyset; the zero value if it is not recorded.
func keyCreated(tx *gorm.DB, id uint32) (time.Time, error) {
	var created keyEvent
	added := []EventKind{EventKeyCreated, EventKeyRotated, EventKeyAdded}
	err := tx.Where("key_id = ? AND event IN ?", id, added).Order("id").Limit(1).Find(&created).Error
	if err != nil {
		return time.Time{}, fmt.Errorf("read events of key %d: %w", id, err)
	}
	return created.At, nil
}
