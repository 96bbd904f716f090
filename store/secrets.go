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

// CheckKeyset checks that the keyset in the file at keysetPath is that of the database. It returns ErrNoKeyset,
// ErrKeysetUnusable, ErrUnavailable, or, if the database has no keyset, database.ErrOlder or
// database.ErrCopyIncomplete.
func CheckKeyset(ctx context.Context, db database.Readable, keysetPath string) error {
	_, err := openKeyring(ctx, db, keysetPath)
	return err
}

const (
	// maxNamedSecrets limits how many damaged secrets an error names.
	maxNamedSecrets = 100
	// maxMissingKeys limits how many missing keys are counted: in an overwritten database, each secret may name another.
	maxMissingKeys = 16
)

// SecretCount counts the secrets that open and those that do not.
type SecretCount struct {
	// Damaged is the number of secrets that do not open, of Total.
	Damaged, Total int64
	// First holds the first 100 damaged ones.
	First []seal.Place
	// ByMissingKey counts those encrypted with a missing key, by the id of the key, for the first 16 such keys.
	ByMissingKey map[uint32]int64
	// Altered counts the others, and Example is the first of them.
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
	id, isMissing := keys.MissingKey(sealed)
	if _, isKnown := c.ByMissingKey[id]; isMissing && (isKnown || len(c.ByMissingKey) < maxMissingKeys) {
		c.ByMissingKey[id]++
		return
	}
	if c.Altered == 0 {
		c.Example = place
	}
	c.Altered++
}

// countSecrets opens every secret, and calls progress after each page.
func countSecrets(reader *gorm.DB, keys *seal.Keys, progress func(done int64)) (SecretCount, error) {
	counted := SecretCount{ByMissingKey: map[uint32]int64{}}
	for _, column := range sealedColumns() {
		for after := int32(0); ; {
			values, err := column.values(reader.Where("pk > ?", after))
			if err != nil {
				return SecretCount{}, fmt.Errorf("check secrets: %w", err)
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

// DamagedSecretsError is ErrDamaged with the damaged secrets.
type DamagedSecretsError struct {
	SecretCount
	// MissingKeys describes the keys of ByMissingKey.
	MissingKeys []string
}

// Error names the secrets and the missing keys.
func (e *DamagedSecretsError) Error() string {
	var names []string
	for _, place := range e.First {
		names = append(names, place.String())
	}
	if more := e.Damaged - int64(len(names)); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("%d of %d secrets cannot be decrypted with the keyset", e.Damaged, e.Total)
	if len(e.MissingKeys) > 0 {
		text += ", which lacks " + strings.Join(e.MissingKeys, " and ")
	}
	return text + ": " + strings.Join(names, ", ")
}

// Unwrap returns ErrDamaged.
func (*DamagedSecretsError) Unwrap() error { return ErrDamaged }

// CheckSecrets opens every secret of a database with the keys in the file at keysetPath, and calls progress from time
// to time. It returns a DamagedSecretsError or the errors of CheckKeyset.
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
			return fmt.Errorf("count secrets: %w", err)
		}
		total += count
	}
	counted, err := countSecrets(reader, keys, func(done int64) { progress(done, total) })
	if err == nil && counted.Damaged > 0 {
		damaged := &DamagedSecretsError{SecretCount: counted}
		for _, id := range slices.Sorted(maps.Keys(counted.ByMissingKey)) {
			damaged.MissingKeys = append(damaged.MissingKeys, keys.Describe(id))
		}
		err = damaged
	}
	return err
}
