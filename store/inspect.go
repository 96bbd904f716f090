package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// Inspection checks a database without changing it. The schema must be one that this program can read.
type Inspection struct {
	database database.Readable
}

// Inspect returns a new Inspection. The caller closes the database.
func Inspect(db database.Readable) Inspection { return Inspection{database: db} }

func (i Inspection) reader(ctx context.Context) *gorm.DB { return i.database.Reader().WithContext(ctx) }

// Keys returns the data keys of the database, which the master keys in the file at keysetPath open.
//
// It returns database.ErrOlder if the database has no keyset, ErrNoKeyset,
// ErrKeysetUnusable or ErrUnavailable.
func (i Inspection) Keys(ctx context.Context, keysetPath string) (*seal.Keys, error) {
	row, err := findKeyset(i.reader(ctx))
	if err != nil {
		return nil, err
	}
	keys, _, err := row.open(keysetPath)
	return keys, err
}

// HasActiveTokens reports whether a token is valid at the given time. It returns ErrUnavailable.
func (i Inspection) HasActiveTokens(ctx context.Context, at time.Time) (bool, error) {
	return anyToken(activeTokens(i.reader(ctx), at))
}

// Expiring returns the names, in order and at most limit, of callers with a token that is valid at one time and none
// that is valid at a later one. It returns ErrUnavailable.
func (i Inspection) Expiring(ctx context.Context, at, later time.Time, limit int) (names []string, err error) {
	err = activeTokens(i.reader(ctx), at).Group("name").Having("max(expires_at) <= ?", database.TimeOf(later)).
		Order("name").Limit(limit).Pluck("name", &names).Error
	if err != nil {
		return nil, fmt.Errorf("find tokens: %w", err)
	}
	return names, nil
}
