package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"time"

	"gorm.io/gorm"
)

// TokenGrant says who a token is for, what it allows and how long.
type TokenGrant struct {
	// Name is the caller.
	Name string
	// Operations are operationIds.
	Operations []string
	// ExpiresIn counts from now.
	ExpiresIn time.Duration
}

// CreateToken makes a token, stores its digest and returns the token itself, which is nowhere else, with what is
// stored. It returns ErrUnavailable.
func (s *Store) CreateToken(ctx context.Context, grant TokenGrant) (string, Token, error) {
	text := newTokenText()
	var token *Token
	err := s.database.Change(ctx, func(tx *gorm.DB) error {
		token = newToken(text, grant)
		return tx.Create(token).Error
	})
	if err != nil {
		return "", Token{}, fmt.Errorf("create token: %w", err)
	}
	return text, *token, nil
}

// CreateFirstToken makes a token in a database that has none, and hands it to keep before it is stored: where keep
// fails or the process dies, the next call starts over. It returns ErrTokensExist, ErrUnavailable or the error of keep.
func (s *Store) CreateFirstToken(ctx context.Context, grant TokenGrant, keep func(text string) error) error {
	err := s.database.Change(ctx, func(tx *gorm.DB) error { return createFirstToken(tx, grant, keep) })
	if err != nil {
		return fmt.Errorf("create first token: %w", err)
	}
	return nil
}

func createFirstToken(tx *gorm.DB, grant TokenGrant, keep func(text string) error) error {
	var count int64
	if err := tx.Model(&Token{}).Count(&count).Error; err != nil {
		return fmt.Errorf("count tokens: %w", err)
	}
	if count > 0 {
		return ErrTokensExist
	}
	text := newTokenText()
	if err := keep(text); err != nil {
		return err
	}
	return tx.Create(newToken(text, grant)).Error
}

func newToken(text string, grant TokenGrant) *Token {
	created := now()
	return &Token{
		Name:       grant.Name,
		Prefix:     text[:len(tokenPrefix)+tokenPrefixShown],
		Digest:     digestToken(text),
		Operations: grant.Operations,
		CreatedAt:  created,
		ExpiresAt:  created.Add(grant.ExpiresIn),
	}
}

// tokenTimeout is how long the database may take to find a token.
const tokenTimeout = 5 * time.Second

// FindToken returns what is stored of this token, whatever its state, or was stored at most half a second ago. It takes
// 5 seconds at most. It returns ErrNotFound, also as ErrTokenMistyped, ErrDamaged or ErrUnavailable.
//
// The look-up by digest takes no secret time: how far a digest agrees tells nothing of the token.
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
		return Token{}, fmt.Errorf("find token: %w", ErrNotFound)
	case tokens[0].damaged != nil:
		return Token{}, fmt.Errorf("find token: %w", tokens[0].damaged)
	}
	s.tokens.put(string(digest), tokens[0].value, read)
	return tokens[0].value, nil
}

// readTokens reads tokens. Those that are damaged are named.
func readTokens(query *gorm.DB) ([]readable[Token], error) {
	tokens, err := readRows[Token](query)
	for i, token := range tokens {
		if token.damaged != nil {
			tokens[i].damaged = fmt.Errorf("token %d: %w", token.value.ID, token.damaged)
		}
	}
	return tokens, err
}

// Tokens returns what is stored of all tokens, oldest first. ErrDamaged, which names its token, stands in the place of
// one. Any other error, which is ErrUnavailable, ends the sequence.
func (s *Store) Tokens(ctx context.Context) iter.Seq2[Token, error] {
	rows := pages(func(last *readable[Token]) ([]readable[Token], error) {
		query := s.reader(ctx)
		if last != nil {
			query = query.Where("id > ?", last.value.ID)
		}
		page, err := readTokens(query.Order("id").Limit(pageSize))
		if err != nil {
			return nil, fmt.Errorf("read tokens: %w", err)
		}
		return page, nil
	})
	return func(yield func(Token, error) bool) {
		for row, err := range rows {
			if !yield(row.value, cmp.Or(err, row.damaged)) {
				return
			}
		}
	}
}

// RevokeToken makes a token useless from now on; a token that is revoked already stays as it is. It returns ErrNotFound
// or ErrUnavailable.
func (s *Store) RevokeToken(ctx context.Context, id int32) error {
	err := s.database.Change(ctx, func(tx *gorm.DB) error {
		var token Token
		if err := tx.Select("id", "revoked_at").Take(&token, id).Error; err != nil {
			return found(err)
		}
		if token.RevokedAt != nil {
			return nil
		}
		return tx.Model(&token).Update("revoked_at", now()).Error
	})
	if err != nil {
		return fmt.Errorf("revoke token %d: %w", id, err)
	}
	s.tokens.clear()
	return nil
}

// HasTokens tells whether any token was ever made. It returns ErrUnavailable.
func (s *Store) HasTokens(ctx context.Context) (bool, error) {
	return anyToken(s.reader(ctx))
}

// anyToken tells whether a query finds any token.
func anyToken(tokens *gorm.DB) (bool, error) {
	var first []Token
	if err := tokens.Select("id").Limit(1).Find(&first).Error; err != nil {
		return false, fmt.Errorf("look for tokens: %w", err)
	}
	return len(first) > 0, nil
}

func digestToken(text string) []byte {
	digest := sha256.Sum256([]byte(text))
	return digest[:]
}
