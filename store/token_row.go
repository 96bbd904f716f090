package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Token is the record of an access token. The text of the token is not stored.
type Token struct {
	ID int64 `gorm:"primaryKey"`
	// Name names the caller. Tokens with the same name belong to the same caller.
	Name string
	// Prefix is the beginning of the text: enough to identify the token, too short to use it.
	Prefix string
	// Digest is the SHA-256 of the text.
	Digest []byte
	// Operations are the operationIds that the token allows.
	Operations List[string]
	CreatedAt  Time
	ExpiresAt  Time
	// RevokedAt is nil if the token is not revoked.
	RevokedAt *Time
}

// TokenState is the state of a token.
type TokenState string

// The states of a token. A revoked token that has expired is revoked.
const (
	TokenActive  TokenState = "active"
	TokenExpired TokenState = "expired"
	TokenRevoked TokenState = "revoked"
)

// State returns the state of the token at the given time.
func (t Token) State(at time.Time) TokenState {
	switch {
	case t.RevokedAt != nil:
		return TokenRevoked
	case !at.Before(t.ExpiresAt.Time):
		return TokenExpired
	default:
		return TokenActive
	}
}

const (
	// tokenCacheTime is how long a token is cached. A revocation must take effect within a second.
	tokenCacheTime = 500 * time.Millisecond
	// maxCachedTokens limits the memory of the cache.
	maxCachedTokens = 1000
)

// tokenCache saves a query for each request. Unknown tokens are not cached, so that a new token is accepted at once.
type tokenCache struct {
	mutex  sync.RWMutex
	tokens map[string]cachedToken
}

type cachedToken struct {
	token Token
	read  time.Time
}

func (c *tokenCache) get(digest string) (Token, bool) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	cached, ok := c.tokens[digest]
	return cached.token, ok && time.Since(cached.read) < tokenCacheTime
}

func (c *tokenCache) put(digest string, token Token, read time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.tokens) >= maxCachedTokens {
		clear(c.tokens)
	}
	c.tokens[digest] = cachedToken{token: token, read: read}
}

func (c *tokenCache) clear() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	clear(c.tokens)
}

// TokenExpiry is when callers are left without a valid token. The newest token of a caller counts, unless its lifetime
// is so short that a program must be renewing it.
type TokenExpiry struct {
	// First is when the first caller is or was left without a valid token; the zero value if there is no caller.
	First time.Time
	// Callers is the number of callers that are left without one soon, or have been for a short time.
	Callers int64
}

// TokenExpiry returns when callers are left without a valid token. It counts those whose newest token expires within
// notice, or has expired within notice without being renewed or revoked, and omits tokens with a lifetime of at most
// notice. It returns ErrUnavailable.
func (s *Store) TokenExpiry(ctx context.Context, notice time.Duration) (expiry TokenExpiry, err error) {
	at, reader := now(), s.reader(ctx)
	newest := activeTokens(reader, at.Add(-notice)).Select("name, max(expires_at)").Group("name")
	var tokens []Token
	err = activeTokens(reader, at.Add(-notice)).Select("id", "name", "created_at", "expires_at").
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

// activeTokens selects the tokens that are valid at a time.
func activeTokens(tx *gorm.DB, at time.Time) *gorm.DB {
	return tx.Model(&Token{}).Where("revoked_at IS NULL AND expires_at > ?", database.TimeOf(at))
}

// NewestKeyCreated returns when the data key that seals was created; the zero value if that is not recorded. It returns
// ErrUnavailable.
func (s *Store) NewestKeyCreated(ctx context.Context) (time.Time, error) {
	keys, err := s.keys.current(s.reader(ctx))
	if err != nil {
		return time.Time{}, err
	}
	return keyCreated(s.reader(ctx), keys.PrimaryID())
}

// keyCreated returns when a data key was created; the zero value if it is not recorded.
func keyCreated(tx *gorm.DB, id uint32) (time.Time, error) {
	var created Event
	added := []EventKind{EventKeyCreated, EventKeyRotated}
	err := tx.Where("subject = ? AND event IN ? AND "+isIndexed, id, added).Order("id").Limit(1).Find(&created).Error
	if err != nil {
		return time.Time{}, fmt.Errorf("read events of key %d: %w", id, err)
	}
	return created.At.Time, nil
}
