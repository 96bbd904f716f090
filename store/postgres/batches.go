package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// batches commits over any connection of the pool.
type batches struct {
	database *Database
}

var _ database.Batches = batches{}

// Commit runs the statements of a batch in one transaction.
func (b batches) Commit(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return b.database.transact(ctx, batchTimeout, statements)
}

// ReservePKs takes pks off the sequence. They stay taken where the transaction is rolled back.
func (b batches) ReservePKs(tx *gorm.DB, count int) ([]int32, error) {
	var values []int64
	err := tx.Raw("SELECT nextval('providers_pk_seq') FROM generate_series(1, ?)", count).Scan(&values).Error
	if err != nil {
		return nil, fmt.Errorf("take pks off the sequence: %w", err)
	}
	slices.Sort(values)
	pks := make([]int32, 0, count)
	for _, value := range values {
		if value <= math.MaxInt32 {
			pks = append(pks, int32(value)) //nolint:gosec // It fits.
		}
	}
	return pks, nil
}

// Maintain does nothing: the server does it.
func (b batches) Maintain(context.Context) {}

// Close does nothing: the connections are the pool's.
func (b batches) Close() error { return nil }
