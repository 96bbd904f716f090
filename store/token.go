package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/rows"
)

// TokenGrant describes a token to create.
type TokenGrant struct {
	// Name identifies the caller.
	Name string
	// Operations are the operationIds that the token allows.
	Operations []string
	// ExpiresIn is how long the token is valid.
	ExpiresIn time.Duration
}

// CreateToken creates a token and returns its text, which is not stored, and the stored record. It returns
// ErrUnavailable.
func (s *Store) CreateToken(ctx context.Context, grant TokenGrant) (string, Token, error) {
	text := newTokenText()
	var token *Token
	err := s.database.Write(ctx, func(tx *gorm.DB) error {
		token = newToken(text, grant)
		return insertToken(tx, token)
	})
	if err != nil {
		return "", Token{}, fmt.Errorf("create token: %w", err)
	}
	return text, *token, nil
}

// CreateFirstToken creates a token in a database that has none. It calls keep with the text before the commit, so
// that the next call starts over if keep fails or the process dies. It returns ErrTokensExist, ErrUnavailable or the
// error of keep.
func (s *Store) CreateFirstToken(ctx context.Context, grant TokenGrant, keep func(text string) error) error {
	err := s.database.Write(ctx, func(tx *gorm.DB) error {
		if exists, err := anyToken(tx); err != nil {
			return err
		} else if exists {
			return ErrTokensExist
		}
		text := newTokenText()
		if err := keep(text); err != nil {
			return err
		}
		return insertToken(tx, newToken(text, grant))
	})
	if err != nil {
		return fmt.Errorf("create first token: %w", err)
	}
	return nil
}

// insertToken inserts a token and its event, after events of other tokens.
func insertToken(tx *gorm.DB, token *Token, others ...event.Event) error {
	if err := tx.Create(token).Error; err != nil {
		return fmt.Errorf("insert token: %w", err)
	}
	return event.Add(tx, append(others, eventOf(event.TokenCreated, *token))...)
}

func eventOf(happened event.Type, token Token) event.Event {
	return event.Event{Event: happened, Subject: token.ID, Name: token.Name}
}

func newToken(text string, grant TokenGrant) *Token {
	created := database.Now()
	return &Token{
		Name:       grant.Name,
		Prefix:     text[:len(tokenPrefix)+tokenPrefixShown],
		Digest:     digestToken(text),
		Operations: grant.Operations,
		CreatedAt:  created,
		ExpiresAt:  database.TimeOf(created.Add(grant.ExpiresIn)),
	}
}

// tokenTimeout limits how long the database can take to find a token.
const tokenTimeout = 5 * time.Second

// FindToken returns the record of a token in any state; it may be half a second old. It takes at most 5 seconds. It
// returns ErrNotFound, ErrTokenMistyped, ErrDamaged or ErrUnavailable.
//
// Looking tokens up by digest leaks nothing useful through timing.
func (s *Store) FindToken(ctx context.Context, text string) (Token, error) {
	if !IsTokenText(text) {
		return Token{}, fmt.Errorf("find token: %w", ErrTokenMistyped)
	}
	digest := digestToken(text)
	if token, ok := s.tokens.get(string(digest)); ok {
		return token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	read := time.Now()
	tokens, err := readTokens(s.reader(ctx).Where("digest = ?", digest))
	switch {
	case err != nil:
		return Token{}, fmt.Errorf("find token: %w", err)
	case len(tokens) == 0:
		return Token{}, fmt.Errorf("find token: %w", s.unknownToken(ctx))
	case tokens[0].Damaged != nil:
		return Token{}, fmt.Errorf("find token: %w", tokens[0].Damaged)
	}
	s.tokens.put(string(digest), tokens[0].Value, read)
	return tokens[0].Value, nil
}

// unknownToken returns ErrNotFound, or ErrUnavailable if the files of an embedded database were changed: what is read
// from them then means nothing.
func (s *Store) unknownToken(ctx context.Context) error {
	if !s.database.IsShared() {
		if err := s.database.Read(ctx, func(*gorm.DB) error { return nil }); err != nil {
			return fmt.Errorf("check the files: %w", err)
		}
	}
	return ErrNotFound
}

// readTokens reads tokens. The error of a damaged one names it.
func readTokens(query *gorm.DB) ([]rows.Row[Token], error) {
	return rows.Read(query.Model(&Token{}), func(into func(model any) error) (token Token, err error) {
		if err = into(&token); err != nil {
			err = fmt.Errorf("token %d: %w", token.ID, err)
		}
		return token, err
	})
}

// Tokens returns the records of all tokens, oldest first. For a damaged one it yields ErrDamaged and continues. On
// ErrUnavailable the sequence ends.
func (s *Store) Tokens(ctx context.Context) iter.Seq2[Token, error] {
	return rows.Values(rows.Pages(func(last *rows.Row[Token]) ([]rows.Row[Token], error) {
		query := s.reader(ctx)
		if last != nil {
			query = query.Where("id > ?", last.Value.ID)
		}
		page, err := readTokens(query.Order("id").Limit(rows.PageSize))
		if err != nil {
			return nil, fmt.Errorf("read tokens: %w", err)
		}
		return page, nil
	}))
}

// RenewToken creates a token with the name and the operations of another one, which ends after overlap at the latest,
// or is revoked if that is zero. It returns the text of the new token, and the records of both. It returns ErrNotFound,
// ErrTokenRevoked or ErrUnavailable; nothing is changed then.
func (s *Store) RenewToken(
	ctx context.Context, id int64, expiresIn, overlap time.Duration,
) (text string, renewed, old Token, err error) {
	text = newTokenText()
	err = s.database.Write(ctx, func(tx *gorm.DB) error {
		if err := tx.Take(&old, id).Error; err != nil {
			return err
		}
		if old.RevokedAt != nil {
			return ErrTokenRevoked
		}
		created := newToken(text, TokenGrant{Name: old.Name, Operations: old.Operations, ExpiresIn: expiresIn})
		events := []event.Event{eventOf(event.TokenRenewed, old)}
		if overlap == 0 {
			old.RevokedAt = &created.CreatedAt
			events = append(events, eventOf(event.TokenRevoked, old))
		} else if end := created.CreatedAt.Add(overlap); end.Before(old.ExpiresAt.Time) {
			old.ExpiresAt = database.TimeOf(end)
		}
		if err := tx.Select("expires_at", "revoked_at").Updates(&old).Error; err != nil {
			return fmt.Errorf("end token: %w", err)
		}
		err := insertToken(tx, created, events...)
		renewed = *created
		return err
	})
	if err != nil {
		return "", Token{}, Token{}, fmt.Errorf("renew token %d: %w", id, err)
	}
	s.tokens.clear()
	return text, renewed, old, nil
}

// RevokeTokens revokes the tokens of a name that are not revoked, expired ones too, and returns how many. It returns
// ErrUnavailable.
func (s *Store) RevokeTokens(ctx context.Context, name string) (revoked int64, err error) {
	if revoked, _, err = s.revoke(ctx, "name = ?", name); err != nil {
		return 0, fmt.Errorf("revoke tokens of %s: %w", name, err)
	}
	return revoked, nil
}

// RevokeToken revokes a token, unless it is already revoked. It returns ErrNotFound or ErrUnavailable.
func (s *Store) RevokeToken(ctx context.Context, id int64) error {
	_, exists, err := s.revoke(ctx, "id = ?", id)
	if err == nil && !exists {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("revoke token %d: %w", id, err)
	}
	return nil
}

// revoke revokes the tokens that a condition selects and that are not revoked. It returns how many, and whether any
// token is selected.
func (s *Store) revoke(ctx context.Context, condition string, value any) (revoked int64, exists bool, err error) {
	err = s.database.Write(ctx, func(tx *gorm.DB) error {
		var tokens []Token
		err := tx.Select("id", "name", "revoked_at").Where(condition, value).Order("id").Find(&tokens).Error
		if err != nil {
			return fmt.Errorf("read tokens: %w", err)
		}
		revoked, exists = 0, len(tokens) > 0
		for _, token := range tokens {
			if token.RevokedAt != nil {
				continue
			}
			revoked++
			if err := tx.Model(&token).Update("revoked_at", database.Now()).Error; err != nil {
				return fmt.Errorf("revoke token %d: %w", token.ID, err)
			}
			if err := event.Add(tx, eventOf(event.TokenRevoked, token)); err != nil {
				return err
			}
		}
		return nil
	})
	s.tokens.clear()
	return revoked, exists, err
}

// HasTokens reports whether any token was ever created. It returns ErrUnavailable.
func (s *Store) HasTokens(ctx context.Context) (bool, error) {
	return anyToken(s.reader(ctx))
}

// anyToken reports whether a query finds a token.
func anyToken(tokens *gorm.DB) (bool, error) {
	var first []Token
	if err := tokens.Select("id").Limit(1).Find(&first).Error; err != nil {
		return false, fmt.Errorf("find tokens: %w", err)
	}
	return len(first) > 0, nil
}

func digestToken(text string) []byte {
	digest := sha256.Sum256(append(make([]byte, 0, tokenLength), text...))
	return digest[:]
}
