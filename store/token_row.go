package store

import "time"

// Token is what is stored of an access token. The token itself is not: it cannot be shown again.
type Token struct {
	ID int32 `gorm:"primaryKey"`
	// Name is the caller. Several tokens may carry one name, so that a renewed token is the same caller.
	Name string
	// Prefix is the beginning of the token, enough to tell tokens apart and too little to use one.
	Prefix string
	// Digest is the SHA-256 of the token.
	Digest []byte
	// Operations are the operationIds that the token allows.
	Operations List[string]
	CreatedAt  time.Time
	ExpiresAt  time.Time
	// RevokedAt is nil while the token is not revoked.
	RevokedAt *time.Time
}

// TokenState is whether a token is accepted.
type TokenState string

// The states of a token. A token that is both revoked and expired is revoked.
const (
	TokenActive  TokenState = "active"
	TokenExpired TokenState = "expired"
	TokenRevoked TokenState = "revoked"
)

// State returns whether the token is accepted at the given time.
func (t Token) State(at time.Time) TokenState {
	switch {
	case t.RevokedAt != nil:
		return TokenRevoked
	case !at.Before(t.ExpiresAt):
		return TokenExpired
	default:
		return TokenActive
	}
}
