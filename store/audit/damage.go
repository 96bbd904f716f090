package audit

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/records"
	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
)

// maxNamed limits how many damaged records an error names.
const maxNamed = 100

// DamagedError is ErrDamaged with the providers that cannot be read, or whose secrets do not open.
type DamagedError struct {
	// Damaged is the number of such providers, of Total.
	Damaged, Total int64
	// First says why the first 100 cannot be read.
	First []error
}

// Error names the providers.
func (e *DamagedError) Error() string {
	var reasons []string
	for _, err := range e.First {
		reasons = append(reasons, err.Error())
	}
	if more := e.Damaged - int64(len(reasons)); more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of %d providers cannot be read: %s", e.Damaged, e.Total, strings.Join(reasons, ", "))
}

// Unwrap returns ErrDamaged.
func (*DamagedError) Unwrap() error { return seal.ErrDamaged }

// CheckProviders reads every provider of a database with its secret, calls progress after each page, and returns their
// number. This program must know the schema. It returns a DamagedError or the errors of keyset.Open.
func CheckProviders(
	ctx context.Context, db database.Readable, keysetPath string, progress func(done, total int64),
) (total int64, err error) {
	reader := db.Reader().WithContext(ctx)
	keys, err := keyset.Open(ctx, db, keysetPath)
	if err != nil {
		return 0, err
	}
	if err := reader.Table(records.Table).Count(&total).Error; err != nil {
		return 0, fmt.Errorf("count providers: %w", err)
	}
	var read DamagedError
	readPage := func(page *gorm.DB) ([]rows.Row[records.Record], error) {
		if read.Total > 0 {
			progress(read.Total, max(read.Total, total))
		}
		return records.Read(page)
	}
	for row, err := range rows.Pages(reader, records.PKColumn, 0, records.KeyOf, readPage) {
		if err != nil {
			return 0, err
		}
		read.Total++
		failure := damageOf(row, keys)
		if failure != nil && len(read.First) < maxNamed {
			// It may just have been resealed, or deleted.
			if keys, err = keyset.Open(ctx, db, keysetPath); err != nil {
				return 0, err
			}
			if failure, err = readAgain(reader.Where("pk = ?", row.Value.Common().PK), keys); err != nil {
				return 0, err
			}
		}
		if failure != nil {
			read.add(failure)
		}
	}
	progress(read.Total, max(read.Total, total))
	if read.Damaged > 0 {
		return read.Total, &read
	}
	return read.Total, nil
}

// readAgain returns why the record that a query selects cannot be read; nil if there is none.
func readAgain(query *gorm.DB, keys *seal.Keys) (failure, err error) {
	again, err := records.Read(query)
	if err != nil || len(again) == 0 {
		return nil, err
	}
	return damageOf(again[0], keys), nil
}

// damageOf returns why a record cannot be read, or its secret not be opened.
func damageOf(read rows.Row[records.Record], keys *seal.Keys) error {
	if read.Damaged != nil {
		return read.Damaged
	}
	common := read.Value.Common()
	_, err := keys.Unseal(common.Sealed, records.PlaceOf(common))
	return err
}

func (e *DamagedError) add(failure error) {
	e.Damaged++
	if len(e.First) < maxNamed {
		e.First = append(e.First, failure)
	}
}
