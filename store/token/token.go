package token

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
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

// The text of a token: a prefix for secret scanners, random characters, and a checksum that detects typing errors.
const (
	prefix         = "pvd_"
	randomLength   = 34
	checksumLength = 6
	length         = len(prefix) + randomLength + checksumLength
	// shownLength is the number of random characters in Token.Prefix.
	shownLength = 6
)

func newText() string {
	random := seal.RandomAlphanumeric(randomLength)
	sum := checksum(random)
	return prefix + random + string(sum[:])
}

// IsText reports whether text has the form of a token: "pvd_", then 40 characters of [0-9A-Za-z], the last 6 of
// which are the CRC-32 (IEEE) of the 34 before them, in base 62.
func IsText(text string) bool {
	if len(text) != length || !strings.HasPrefix(text, prefix) {
		return false
	}
	random := text[len(prefix) : len(prefix)+randomLength]
	sum := checksum(random)
	return strings.Trim(random, seal.Alphanumeric) == "" && text[length-checksumLength:] == string(sum[:])
}

func checksum(random string) (digits [checksumLength]byte) {
	sum := crc32.ChecksumIEEE([]byte(random))
	for i := checksumLength - 1; i >= 0; i-- {
		digits[i] = seal.Alphanumeric[sum%uint32(len(seal.Alphanumeric))]
		sum /= uint32(len(seal.Alphanumeric))
	}
	return digits
}

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
