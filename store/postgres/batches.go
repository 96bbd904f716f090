package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// batches commits batches on connections of the pool.
type batches struct {
	database *Database
	// tables caches the tables by row type.
	tables map[reflect.Type]table
}

var _ database.Batches = batches{}

// Commit runs the statements of a batch in one transaction. The message that begins it also reserves the pks.
func (b batches) Commit(ctx context.Context, pks int, statements func(database.Batch) error) error {
	var last *batch
	err := b.database.transact(ctx, batchTimeout, pks, func(t *transaction) error {
		last = &batch{transaction: t, batches: b}
		return statements(last)
	})
	if last != nil && last.hasInserted {
		b.database.noteBatch(err)
	}
	return err
}

// batch is the transaction of a batch.
type batch struct {
	*transaction
	batches batches
	// hasInserted is set once rows were sent.
	hasInserted bool
}

// DB returns a handle to the transaction.
func (b *batch) DB() *gorm.DB { return b.tx }

// KeysetVersion returns the version of the keyset when the transaction began.
func (b *batch) KeysetVersion() []byte { return b.keysetVersion }

// ReservePKs returns pks that were reserved when the transaction began, and reserves more if there are too few. They
// stay reserved if the transaction is rolled back.
func (b *batch) ReservePKs(count int) ([]int32, error) {
	if lacking := count - len(b.reserved); lacking > 0 {
		var pipeline pgx.Batch
		b.queueReserve(&pipeline, lacking)
		if err := b.send(b.tx.Statement.Context, &pipeline); err != nil {
			return nil, fmt.Errorf("reserve pks: %w", err)
		}
	}
	values := b.reserved[:count]
	b.reserved = b.reserved[count:]
	slices.Sort(values)
	pks := make([]int32, 0, count)
	for _, value := range values {
		if value <= math.MaxInt32 {
			pks = append(pks, int32(value)) //nolint:gosec // It fits.
		}
	}
	return pks, nil
}

// LastPK returns the last value of the sequence.
func (b *batch) LastPK() (last int64, err error) {
	if err := b.tx.Raw("SELECT last_value FROM providers_pk_seq").Scan(&last).Error; err != nil {
		return 0, fmt.Errorf("read the last pk: %w", err)
	}
	return last, nil
}

// CanStore returns an error if rows cannot be inserted. It tries only if the last batch with rows failed.
func (b *batch) CanStore() error {
	if !b.batches.database.isInsertFailing.Load() {
		return nil
	}
	return b.checkInsert(b.tx.Statement.Context, true)
}

// Insert sends all rows in one message, with one statement per list. It returns database.ErrRetry if a row violates a
// foreign key, which happens when the row that it refers to is left out because of a conflict.
func (b *batch) Insert(lists ...any) (left []int, err error) {
	ctx := b.tx.Statement.Context
	left = make([]int, len(lists))
	var pipeline pgx.Batch
	for n, list := range lists {
		rows := reflect.ValueOf(list)
		left[n] = rows.Len()
		if left[n] == 0 {
			continue
		}
		table, err := b.batches.table(b.tx, rows)
		if err != nil {
			return nil, err
		}
		err = table.queue(ctx, &pipeline, rows, func(done pgconn.CommandTag) error {
			left[n] -= int(done.RowsAffected())
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	b.hasInserted = b.hasInserted || pipeline.Len() > 0
	err = b.send(ctx, &pipeline)
	if native, ok := errors.AsType[*pgconn.PgError](err); ok && native.Code == foreignKeyViolation {
		return nil, fmt.Errorf("%w: %w", database.ErrRetry, err)
	}
	return left, err
}

// table returns the table of a []*Row.
func (b batches) table(tx *gorm.DB, rows reflect.Value) (table, error) {
	if known, ok := b.tables[rows.Type()]; ok {
		return known, nil
	}
	read, err := newTable(tx, rows.Interface())
	if err == nil {
		b.tables[rows.Type()] = read
	}
	return read, err
}

// Maintain does nothing: the server maintains itself.
func (b batches) Maintain(context.Context) {}

// Close does nothing: the connections belong to the pool.
func (b batches) Close() error { return nil }
