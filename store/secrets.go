package store

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

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

// Secrets opens every secret, calls progress after each page, and returns how many there are. It returns a
// DamagedSecretsError or the errors of Keys.
func (i Inspection) Secrets(
	ctx context.Context, keysetPath string, progress func(done, total int64),
) (total int64, err error) {
	keys, err := i.Keys(ctx, keysetPath)
	if err != nil {
		return 0, err
	}
	reader := i.reader(ctx)
	if err := reader.Table(providersTable).Count(&total).Error; err != nil {
		return 0, fmt.Errorf("count secrets: %w", err)
	}
	var opened DamagedSecretsError
	rows := pages(func(last *Provider) (page []Provider, err error) {
		query := sealedRows(reader).Limit(pageSize)
		if last != nil {
			progress(opened.Total, max(opened.Total, total))
			query = query.Where("pk > ?", last.PK)
		}
		return page, query.Find(&page).Error
	})
	for row, err := range rows {
		if err != nil {
			return 0, fmt.Errorf("read secrets: %w", err)
		}
		_, failure := keys.Unseal(row.Sealed, placeOf(row))
		if failure != nil && opened.Damaged < maxNamedSecrets {
			// It may just have been resealed.
			if keys, err = i.Keys(ctx, keysetPath); err != nil {
				return 0, err
			}
			if failure, err = failureOf(reader, keys, row.PK); err != nil {
				return 0, err
			}
		}
		opened.add(failure)
	}
	progress(opened.Total, max(opened.Total, total))
	if opened.Damaged > 0 {
		return opened.Total, &opened
	}
	return opened.Total, nil
}

// sealedRows selects the columns that a secret is opened with.
func sealedRows(reader *gorm.DB) *gorm.DB {
	return reader.Select("pk", "uid", "kind", "secret").Order("pk")
}

// failureOf returns why the secret that a provider has now does not open. The provider may have been deleted.
func failureOf(reader *gorm.DB, keys *seal.Keys, pk int64) (failure, err error) {
	var rows []Provider
	if err := sealedRows(reader).Find(&rows, pk).Error; err != nil || len(rows) == 0 {
		return nil, err
	}
	_, failure = keys.Unseal(rows[0].Sealed, placeOf(rows[0]))
	return failure, nil
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
