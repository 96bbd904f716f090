package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// CheckKeyset makes sure that the keyset in the file at keysetPath is that of a database. It returns ErrNoKeyset,
// ErrKeysetUnusable, ErrUnavailable, and database.ErrOlder or ErrCopyIncomplete for a database without a keyset of its own.
func CheckKeyset(ctx context.Context, db database.Readable, keysetPath string) error {
	_, err := openKeyring(ctx, db, keysetPath)
	return err
}

const (
	// maxNamedSecrets bounds how many damaged secrets an error names.
	maxNamedSecrets = 100
	// maxLackingKeys bounds the ids that are told apart: in a database that was overwritten, each secret may have another.
	maxLackingKeys = 16
)

// SecretCount is how many secrets open, and which do not.
type SecretCount struct {
	// Damaged is how many of all secrets do not open, and Total how many there are.
	Damaged, Total int64
	// First are the first 100 of the damaged ones.
	First []seal.Place
	// Lacking counts the damaged ones that are encrypted with a key that is not there, by the id of the key: of the first
	// 16 such ids.
	Lacking map[uint32]int64
	// Altered counts the other damaged ones, and Example is the first of them.
	Altered int64
	Example seal.Place
}

func (c *SecretCount) add(keys *seal.Keys, place seal.Place, sealed []byte) {
	c.Total++
	if _, err := keys.Unseal(sealed, place); err == nil {
		return
	}
	c.Damaged++
	if len(c.First) < maxNamedSecrets {
		c.First = append(c.First, place)
	}
	id, lacks := keys.MissingKey(sealed)
	if _, isKnown := c.Lacking[id]; lacks && (isKnown || len(c.Lacking) < maxLackingKeys) {
		c.Lacking[id]++
		return
	}
	if c.Altered == 0 {
		c.Example = place
	}
	c.Altered++
}

// countSecrets opens every secret, a page at a time, after each of which it tells how many it has opened.
func countSecrets(reader *gorm.DB, keys *seal.Keys, progress func(done int64)) (SecretCount, error) {
	counted := SecretCount{Lacking: map[uint32]int64{}}
	for _, column := range sealedColumns() {
		for after := int32(0); ; {
			values, err := column.values(reader.Where("pk > ?", after))
			if err != nil {
				return SecretCount{}, fmt.Errorf("check the secrets: %w", err)
			}
			if len(values) == 0 {
				break
			}
			for _, value := range values {
				counted.add(keys, column.place(value.PK), value.Value)
			}
			after = values[len(values)-1].PK
			progress(counted.Total)
		}
	}
	return counted, nil
}

// DamagedSecretsError is ErrDamaged with the secrets that it is about.
type DamagedSecretsError struct {
	SecretCount
	// MissingKeys describe those of Lacking.
	MissingKeys []string
}

// Error names the secrets.
func (e *DamagedSecretsError) Error() string {
	var names []string
	for _, place := range e.First {
		names = append(names, place.String())
	}
	if more := e.Damaged - int64(len(names)); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("%d of %d secrets do not open with the keyset", e.Damaged, e.Total)
	if len(e.MissingKeys) > 0 {
		text += ", which lacks " + strings.Join(e.MissingKeys, " and ")
	}
	return text + ": " + strings.Join(names, ", ")
}

// Unwrap returns ErrDamaged.
func (*DamagedSecretsError) Unwrap() error { return ErrDamaged }

// CheckSecrets opens every secret of a database with the keys in the file at keysetPath. It tells how far it is after
// each few. It returns a DamagedSecretsError, or the errors of CheckKeyset.
func CheckSecrets(
	ctx context.Context, db database.Readable, keysetPath string, progress func(done, total int64),
) error {
	keys, err := openKeys(ctx, db, keysetPath)
	if err != nil {
		return err
	}
	reader := db.Reader().WithContext(ctx)
	var total int64
	for _, column := range sealedColumns() {
		var count int64
		if err := reader.Table(column.table).Count(&count).Error; err != nil {
			return fmt.Errorf("count the secrets: %w", err)
		}
		total += count
	}
	counted, err := countSecrets(reader, keys, func(done int64) { progress(done, total) })
	if err == nil && counted.Damaged > 0 {
		damaged := &DamagedSecretsError{SecretCount: counted}
		for _, id := range slices.Sorted(maps.Keys(counted.Lacking)) {
			damaged.MissingKeys = append(damaged.MissingKeys, keys.Describe(id))
		}
		err = damaged
	}
	return err
}
