package store

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// CheckKeyset checks that the master keys in the file at keysetPath open the data keys of the database. It returns
// ErrNoKeyset, ErrKeysetUnusable, ErrUnavailable, or, if the database has no keyset, database.ErrOlder or
// database.ErrCopyIncomplete.
func CheckKeyset(ctx context.Context, db database.Readable, keysetPath string) error {
	_, err := openKeys(ctx, db, keysetPath)
	return err
}

// CheckSecrets opens every secret of a database with the master keys in the file at keysetPath, and calls progress from
// time to time. It returns a DamagedSecretsError or the errors of CheckKeyset.
func CheckSecrets(
	ctx context.Context, db database.Readable, keysetPath string, progress func(done, total int64),
) error {
	_, err := openSecrets(ctx, db, keysetPath, progress)
	return err
}

// maxNamedSecrets limits how many damaged secrets an error names.
const maxNamedSecrets = 100

// DamagedSecretsError is ErrDamaged with the secrets that do not open.
type DamagedSecretsError struct {
	// Damaged is the number of secrets that do not open, of Total.
	Damaged, Total int64
	// First says why the first 100 do not.
	First []error
}

// Error names the secrets.
func (e *DamagedSecretsError) Error() string {
	var reasons []string
	for _, err := range e.First {
		reasons = append(reasons, err.Error())
	}
	if more := e.Damaged - int64(len(reasons)); more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of %d secrets cannot be decrypted: %s", e.Damaged, e.Total, strings.Join(reasons, ", "))
}

// Unwrap returns ErrDamaged.
func (*DamagedSecretsError) Unwrap() error { return ErrDamaged }

// openSecrets opens every secret, calls progress after each page, and returns how many there are. It returns a
// DamagedSecretsError.
func openSecrets(
	ctx context.Context, db database.Readable, keysetPath string, progress func(done, total int64),
) (total int64, err error) {
	keys, err := openKeys(ctx, db, keysetPath)
	if err != nil {
		return 0, err
	}
	reader := db.Reader().WithContext(ctx)
	for _, column := range sealedColumns() {
		var count int64
		if err := reader.Table(column.table).Count(&count).Error; err != nil {
			return 0, fmt.Errorf("count secrets: %w", err)
		}
		total += count
	}
	var opened DamagedSecretsError
	reload := func() (*seal.Keys, error) { return openKeys(ctx, db, keysetPath) }
	for _, column := range sealedColumns() {
		for after := int32(0); ; {
			values, err := column.values(reader.Where("pk > ?", after))
			if err != nil {
				return 0, fmt.Errorf("check secrets: %w", err)
			}
			if len(values) == 0 {
				break
			}
			if keys, err = opened.open(reader, column, values, keys, reload); err != nil {
				return 0, err
			}
			after = values[len(values)-1].PK
			progress(opened.Total, max(opened.Total, total))
		}
	}
	if opened.Damaged > 0 {
		return opened.Total, &opened
	}
	return opened.Total, nil
}

// open opens secrets. One that does not open is read again with its key, because it may just have been resealed. It
// returns the keys that were read last.
func (e *DamagedSecretsError) open(
	reader *gorm.DB, column sealedColumn, values []sealedValue, keys *seal.Keys, reload func() (*seal.Keys, error),
) (*seal.Keys, error) {
	for _, value := range values {
		failure := column.opens(keys, value)
		if failure != nil && e.Damaged < maxNamedSecrets {
			var err error
			if keys, err = reload(); err != nil {
				return nil, err
			}
			if failure, err = column.opensAgain(reader, keys, value.PK); err != nil {
				return nil, err
			}
		}
		e.add(failure)
	}
	return keys, nil
}

// add counts a secret, and why it does not open.
func (e *DamagedSecretsError) add(failure error) {
	e.Total++
	if failure == nil {
		return
	}
	e.Damaged++
	if len(e.First) < maxNamedSecrets {
		e.First = append(e.First, failure)
	}
}

// opens returns why a secret does not open.
func (c sealedColumn) opens(keys *seal.Keys, value sealedValue) error {
	_, err := keys.Unseal(value.Value, c.place(value.PK))
	return err
}

// opensAgain is opens for what is stored now. A provider may have been deleted.
func (c sealedColumn) opensAgain(reader *gorm.DB, keys *seal.Keys, pk int32) (failure, err error) {
	values, err := c.values(reader.Where("pk = ?", pk))
	if err != nil || len(values) == 0 {
		return nil, err
	}
	return c.opens(keys, values[0]), nil
}
