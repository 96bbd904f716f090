package token

import (
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/rows"
)

// Token is the record of an access token. The text of the token is not stored.
type Token struct {
	ID int64 `gorm:"primaryKey" json:"id"`
	// Prefix is the beginning of the text: enough to identify the token, too short to use it.
	Prefix string `json:"prefix"`
	// Name names the caller. Tokens with the same name belong to the same caller.
	Name string `json:"name"`
	// Digest is the SHA-256 of the text.
	Digest []byte `json:"digest"`
	// Operations are the operationIds that the token allows.
	Operations rows.List[string] `json:"operations"`
	CreatedAt  database.Time     `json:"created_at"`
	ExpiresAt  database.Time     `json:"expires_at"`
	// RevokedAt is nil if the token is not revoked.
	RevokedAt *database.Time `json:"revoked_at"`
}

// State is the state of a token.
type State string

// The states of a token. A revoked token that has expired is revoked.
const (
	Active  State = "active"
	Expired State = "expired"
	Revoked State = "revoked"
)

// State returns the state of the token at the given time.
func (t Token) State(at time.Time) State {
	switch {
	case t.RevokedAt != nil:
		return Revoked
	case !at.Before(t.ExpiresAt.Time):
		return Expired
	default:
		return Active
	}
}
