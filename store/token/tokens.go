// Package token holds the access tokens of callers. It knows nothing of what they create.
//
// Start with Tokens, which creates and finds them.
package token

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/rows"
)

var (
	// ErrMistyped means that a string is not a token: its form or its checksum is wrong. It wraps ErrNotFound.
	ErrMistyped = fmt.Errorf("%w: not a token, or mistyped", database.ErrNotFound)
	// ErrRevoked means that the token is revoked, so it cannot be renewed.
	ErrRevoked = errors.New("token is revoked")
	// ErrExist means that the database already has a token.
	ErrExist = errors.New("tokens exist")
)

// Tokens are the tokens of a database. They are safe for concurrent use.
type Tokens struct {
	database database.Database
	cache    cache
}

// New returns the tokens of a database.
func New(db database.Database) *Tokens { return &Tokens{database: db} }

// Grant describes a token to create.
type Grant struct {
	// Name identifies the caller.
	Name string
	// Operations are the operationIds that the token allows.
	Operations []string
	// ExpiresIn is how long the token is valid.
	ExpiresIn time.Duration
}

// Create creates a token and returns its text, which is not stored, and its record, or ErrUnavailable.
func (t *Tokens) Create(ctx context.Context, grant Grant) (string, Token, error) {
	text := newText()
	var token Token
	err := t.database.Write(ctx, func(tx *gorm.DB) (err error) {
		token, err = insertToken(tx, text, grant)
		return err
	})
	if err != nil {
		return "", Token{}, fmt.Errorf("create token: %w", err)
	}
	return text, token, nil
}

// CreateFirst creates a token in a database that has none. It calls keep with the text before the commit, so that a
// failure starts over. It returns ErrExist, ErrUnavailable or the error of keep.
func (t *Tokens) CreateFirst(ctx context.Context, grant Grant, keep func(text string) error) error {
	err := t.database.Write(ctx, func(tx *gorm.DB) error {
		if exists, err := anyOf(tx); err != nil {
			return err
		} else if exists {
			return ErrExist
		}
		text := newText()
		if err := keep(text); err != nil {
			return err
		}
		_, err := insertToken(tx, text, grant)
		return err
	})
	return database.Wrap("create first token", err)
}

// insertToken inserts a token and its event, after events of other tokens.
func insertToken(tx *gorm.DB, text string, grant Grant, others ...event.Event) (Token, error) {
	created := database.Now()
	token := Token{
		Name: grant.Name, Prefix: text[:len(prefix)+shownLength], Digest: digestOf(text), Operations: grant.Operations,
		CreatedAt: created, ExpiresAt: database.TimeOf(created.Add(grant.ExpiresIn)),
	}
	if err := tx.Create(&token).Error; err != nil {
		return token, err
	}
	return token, event.Add(tx, append(others, eventOf(event.TokenCreated, token))...)
}

func eventOf(happened event.Type, token Token) event.Event {
	return event.Event{Event: happened, Subject: token.ID, Name: token.Name}
}

// findTimeout limits how long the database can take to find a token.
const findTimeout = 5 * time.Second

// Find returns the record of a token in any state; it may be half a second old. It takes at most 5 seconds. It
// returns ErrNotFound, ErrMistyped, ErrDamaged or ErrUnavailable.
//
// Looking tokens up by digest leaks nothing useful through timing.
func (t *Tokens) Find(ctx context.Context, text string) (Token, error) {
	if !IsText(text) {
		return Token{}, fmt.Errorf("find token: %w", ErrMistyped)
	}
	digest := digestOf(text)
	if token, ok := t.cache.get(string(digest)); ok {
		return token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	read := time.Now()
	tokens, err := Read(t.database.Reader().WithContext(ctx).Where("digest = ?", digest))
	switch {
	case err != nil:
		return Token{}, fmt.Errorf("find token: %w", err)
	case len(tokens) == 0:
		return Token{}, fmt.Errorf("find token: %w", t.unknown(ctx))
	case tokens[0].Damaged != nil:
		return Token{}, fmt.Errorf("find token: %w", tokens[0].Damaged)
	}
	t.cache.put(string(digest), tokens[0].Value, read)
	return tokens[0].Value, nil
}

// unknown returns ErrNotFound, or ErrUnavailable if files were changed, from which what was read means nothing.
func (t *Tokens) unknown(ctx context.Context) error {
	if !t.database.IsShared() {
		if err := t.database.Read(ctx, func(*gorm.DB) error { return nil }); err != nil {
			return fmt.Errorf("check the files: %w", err)
		}
	}
	return database.ErrNotFound
}

// Read reads tokens. The error of a damaged one names it.
func Read(query *gorm.DB) ([]rows.Row[Token], error) {
	return rows.Read(query.Model(&Token{}), func(into func(model any) error) (token Token, err error) {
		if err = into(&token); err != nil {
			err = fmt.Errorf("token %d: %w", token.ID, err)
		}
		return token, err
	})
}

// List returns the records of all tokens, oldest first, ErrDamaged for a damaged one. It ends on ErrUnavailable.
func (t *Tokens) List(ctx context.Context) iter.Seq2[Token, error] {
	key := func(row rows.Row[Token]) int64 { return row.Value.ID }
	return rows.Values(rows.Pages(t.database.Reader().WithContext(ctx), "id", 0, key, Read))
}

// Renew creates a token with the name and the operations of another one, which ends after overlap at the latest,
// or is revoked if that is zero. It returns the text of the new token, and the records of both. It returns ErrNotFound,
// ErrRevoked or ErrUnavailable; nothing is changed then.
func (t *Tokens) Renew(
	ctx context.Context, id int64, expiresIn, overlap time.Duration,
) (text string, renewed, old Token, err error) {
	text = newText()
	err = t.database.Write(ctx, func(tx *gorm.DB) error {
		if err := tx.Take(&old, id).Error; err != nil {
			return err
		}
		if old.RevokedAt != nil {
			return ErrRevoked
		}
		at, events := database.Now(), []event.Event{eventOf(event.TokenRenewed, old)}
		if overlap == 0 {
			old.RevokedAt = &at
			events = append(events, eventOf(event.TokenRevoked, old))
		} else if end := at.Add(overlap); end.Before(old.ExpiresAt.Time) {
			old.ExpiresAt = database.TimeOf(end)
		}
		err := tx.Select("expires_at", "revoked_at").Updates(&old).Error
		if err == nil {
			renewed, err = insertToken(tx, text, Grant{old.Name, old.Operations, expiresIn}, events...)
		}
		return err
	})
	if err != nil {
		return "", Token{}, Token{}, fmt.Errorf("renew token %d: %w", id, err)
	}
	return text, renewed, old, nil
}

// RevokeAll revokes the tokens of a name, expired ones too, and returns how many were not, or ErrUnavailable.
func (t *Tokens) RevokeAll(ctx context.Context, name string) (revoked int64, err error) {
	revoked, _, err = t.revoke(ctx, "name = ?", name)
	return revoked, database.Wrap("revoke tokens of "+name, err)
}

// Revoke revokes a token, unless it is already revoked. It returns ErrNotFound or ErrUnavailable.
func (t *Tokens) Revoke(ctx context.Context, id int64) error {
	_, exists, err := t.revoke(ctx, "id = ?", id)
	if err == nil && !exists {
		err = database.ErrNotFound
	}
	return database.Wrap(fmt.Sprintf("revoke token %d", id), err)
}

// revoke revokes tokens that a condition selects. It returns how many were not revoked, and whether it selects any.
func (t *Tokens) revoke(ctx context.Context, condition string, value any) (revoked int64, exists bool, err error) {
	err = t.database.Write(ctx, func(tx *gorm.DB) error {
		var tokens []Token
		err := tx.Select("id", "name", "revoked_at").Where(condition, value).Order("id").Find(&tokens).Error
		if err != nil {
			return err
		}
		var events []event.Event
		for _, token := range tokens {
			if token.RevokedAt != nil {
				continue
			}
			if err := tx.Model(&token).Update("revoked_at", database.Now()).Error; err != nil {
				return err
			}
			events = append(events, eventOf(event.TokenRevoked, token))
		}
		revoked, exists = int64(len(events)), len(tokens) > 0
		return event.Add(tx, events...)
	})
	return revoked, exists, err
}

// Exist reports whether any token was ever created. It returns ErrUnavailable.
func (t *Tokens) Exist(ctx context.Context) (bool, error) {
	return anyOf(t.database.Reader().WithContext(ctx))
}

// anyOf reports whether a query finds a token.
func anyOf(tokens *gorm.DB) (bool, error) {
	var first []Token
	err := tokens.Select("id").Limit(1).Find(&first).Error
	return len(first) > 0, err
}

func digestOf(text string) []byte {
	digest := sha256.Sum256(append(make([]byte, 0, length), text...))
	return digest[:]
}

const (
	// cacheTime is how long a token is cached. A revocation must take effect within a second.
	cacheTime = 500 * time.Millisecond
	// maxCached limits the memory of the cache.
	maxCached = 1000
)

// cache saves a query for each request. Unknown tokens are not cached, so that a new token is accepted at once.
type cache struct {
	mutex  sync.RWMutex
	tokens map[string]cachedToken
}

type cachedToken struct {
	token Token
	read  time.Time
}

func (c *cache) get(digest string) (Token, bool) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	cached, ok := c.tokens[digest]
	return cached.token, ok && time.Since(cached.read) < cacheTime
}

func (c *cache) put(digest string, token Token, read time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.tokens == nil || len(c.tokens) >= maxCached {
		c.tokens = map[string]cachedToken{}
	}
	c.tokens[digest] = cachedToken{token: token, read: read}
}
