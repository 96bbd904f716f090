package token

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Expiry is when callers are left without a valid token. The newest token of a caller counts, unless its lifetime
// is so short that a program must be renewing it.
type Expiry struct {
	// First is when the first of the callers is, or was, left without a valid token; the zero value if there is none.
	First time.Time
	// Callers is the number of callers that are left without one soon, or have been for a short time.
	Callers int64
}

// Expiry returns when callers are left without a valid token. It counts those whose newest token expires within
// notice, or has expired within notice without being renewed or revoked, and omits tokens with a lifetime of at most
// notice. It returns ErrUnavailable.
func (t *Tokens) Expiry(ctx context.Context, notice time.Duration) (expiry Expiry, err error) {
	at, reader := database.Now(), t.database.Reader().WithContext(ctx)
	newest := active(reader, at.Add(-notice)).Select("name, max(expires_at)").Group("name")
	var tokens []Token
	err = active(reader, at.Add(-notice)).Select("id", "name", "created_at", "expires_at").
		Where("(name, expires_at) IN (?)", newest).Order("expires_at").Find(&tokens).Error
	if err != nil {
		return expiry, fmt.Errorf("read expiry of tokens: %w", err)
	}
	callers := map[string]bool{}
	for _, token := range tokens {
		if token.ExpiresAt.Sub(token.CreatedAt.Time) <= notice {
			continue
		}
		if expiry.First.IsZero() {
			expiry.First = token.ExpiresAt.Time
		}
		if token.ExpiresAt.Before(at.Add(notice)) {
			callers[token.Name] = true
		}
	}
	expiry.Callers = int64(len(callers))
	return expiry, nil
}

func active(tx *gorm.DB, at time.Time) *gorm.DB {
	return tx.Model(&Token{}).Where("revoked_at IS NULL AND expires_at > ?", database.TimeOf(at))
}

// HasActive reports whether a token is valid at the given time. It returns ErrUnavailable.
func HasActive(ctx context.Context, db database.Readable, at time.Time) (bool, error) {
	return anyOf(active(db.Reader().WithContext(ctx), at))
}

// Expiring returns the names, in order and at most limit, of callers with a token that is valid at one time and none
// that is valid at a later one. It returns ErrUnavailable.
func Expiring(ctx context.Context, db database.Readable, at, later time.Time, limit int) (names []string, err error) {
	query := active(db.Reader().WithContext(ctx), at).Group("name").Having("max(expires_at) <= ?", database.TimeOf(later))
	err = query.Order("name").Limit(limit).Pluck("name", &names).Error
	return names, err
}
