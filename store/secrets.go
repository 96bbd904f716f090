package store

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// CheckKeyset makes sure that the keyset in the file at keysetPath is that of a database. It returns ErrNoKeyset,
// ErrKeysetUnusable, ErrUnavailable, and database.ErrOlder or ErrHalfCopied for a database without a keyset of its own.
func CheckKeyset(ctx context.Context, db database.Readable, keysetPath string) error {
	_, err := openKeyring(ctx, db, keysetPath)
	return err
}

// maxNamedSecrets bounds how many damaged secrets an error names.
const maxNamedSecrets = 100

// DamagedSecretsError is ErrDamaged with the secrets that it is about.
type DamagedSecretsError struct {
	// Damaged is how many of all secrets do not open, and Total how many there are.
	Damaged, Total int64
	// First are the first 100 of the damaged ones.
	First []seal.Place
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
	return fmt.Sprintf("%d of %d secrets do not open with the keyset: %s", e.Damaged, e.Total, strings.Join(names, ", "))
}

// Unwrap returns ErrDamaged.
func (*DamagedSecretsError) Unwrap() error { return ErrDamaged }

// CheckSecrets opens every secret of a database with the keys in the file at keysetPath. It tells how far it is after
// each few. It returns a DamagedSecretsError, or the errors of CheckKeyset.
func CheckSecrets(
	ctx context.Context, db database.Readable, keysetPath string, progress func(done, total int64),
) error {
	ring, err := openKeyring(ctx, db, keysetPath)
	if err != nil {
		return err
	}
	keys, err := ring.Current()
	if err != nil {
		return err
	}
	run := secretsCheck{reader: db.Reader().WithContext(ctx), keys: keys, progress: progress}
	for _, column := range sealedColumns() {
		var count int64
		if err := run.reader.Table(column.table).Count(&count).Error; err != nil {
			return fmt.Errorf("count the secrets: %w", err)
		}
		run.found.Total += count
	}
	for _, column := range sealedColumns() {
		if err := run.column(column); err != nil {
			return fmt.Errorf("check the secrets: %w", err)
		}
	}
	if run.found.Damaged > 0 {
		return &run.found
	}
	return nil
}

// secretsCheck is one call of CheckSecrets.
type secretsCheck struct {
	reader   *gorm.DB
	keys     *seal.Keys
	progress func(done, total int64)
	done     int64
	found    DamagedSecretsError
}

func (c *secretsCheck) column(column sealedColumn) error {
	for after := int32(0); ; {
		values, err := column.values(c.reader.Where("pk > ?", after))
		if err != nil || len(values) == 0 {
			return err
		}
		for _, value := range values {
			c.value(column.place(value.PK), value.Value)
		}
		after = values[len(values)-1].PK
		c.done += int64(len(values))
		c.progress(c.done, c.found.Total)
	}
}

func (c *secretsCheck) value(place seal.Place, sealed []byte) {
	if _, err := c.keys.Unseal(sealed, place); err == nil {
		return
	}
	c.found.Damaged++
	if len(c.found.First) < maxNamedSecrets {
		c.found.First = append(c.found.First, place)
	}
}
