package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// create is one create on its way to the disk.
type create struct {
	creation Creation
	// digest is that of the body; nil without a key.
	digest   []byte
	settings settings
	// claimed is set by whoever is first: the batcher that begins with it, or the caller that gives up.
	claimed atomic.Bool
	done    chan struct{}
	// replays is the pk of the record that the key made before, or 0; err is why nothing is stored. Both are valid once
	// done is closed.
	replays int32
	err     error
}

// batch is some creates that share one transaction.
type batch []*create

// commit stores the creates in one durable transaction, but for those that it refuses, which have an error of their
// own. Its error is that of all of them.
func (b batch) commit(ctx context.Context, db database.Batches, current keySource) error {
	keys, err := current(ctx)
	if err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	err = db.Commit(ctx, func(tx *gorm.DB) error {
		for _, one := range b {
			one.replays, one.err = 0, nil
		}
		return insertion{tx: tx, database: db, keys: keys}.insert(b)
	})
	if errors.Is(err, ErrOutcomeUnknown) {
		return b.settle(ctx, db, err)
	}
	return err
}

// finish tells every caller the outcome.
func (b batch) finish(err error) {
	for _, one := range b {
		if err != nil {
			one.err = err
		}
		close(one.done)
	}
}

// insertion writes the rows of a batch in a transaction that has begun. Rows of which a unique value is taken are left
// out, and their creates refused; nothing else makes a statement fail, so that every database can go on.
type insertion struct {
	tx       *gorm.DB
	database database.Batches
	keys     *seal.Keys
}

// insert writes the common rows first, because the rows of the kinds have their pks. Each table is written in the order
// of its unique values: transactions that wait for each other's rows then do so in one order.
func (i insertion) insert(creates batch) error {
	fresh, err := i.withoutReplays(creates)
	if err != nil {
		return err
	}
	slices.SortStableFunc(fresh, func(a, b *create) int { return a.creation.compareScope(b.creation) })
	if fresh, err = i.withPKs(fresh); err != nil {
		return err
	}
	inserted, err := i.common(fresh)
	if err != nil {
		return err
	}
	refused, err := i.kinds(inserted)
	if err != nil || len(refused) == 0 {
		return err
	}
	return i.takeBack(refused)
}

// takeBack removes the common rows of creates whose client_id is taken, and refuses them.
func (i insertion) takeBack(creates batch) error {
	taken := map[string]bool{}
	for _, one := range creates {
		taken[one.settings.uniqueValue()] = true
		one.err = ErrClientIDTaken
	}
	var count int64
	err := i.tx.Model(&oauth2Row{}).Where("client_id IN ?", padded(slices.Sorted(maps.Keys(taken)))).Count(&count).Error
	if err != nil {
		return fmt.Errorf("look up taken values: %w", err)
	}
	if count != int64(len(taken)) {
		return fmt.Errorf("%d rows are left out, and only %d of their values are taken", len(creates), count)
	}
	if err := i.tx.Delete(&Creation{}, "pk IN ?", padded(pksOf(creates))).Error; err != nil {
		return fmt.Errorf("take rows back: %w", err)
	}
	return nil
}

// withPKs gives each create its pk, and refuses those for which none is left. Their time is that of the batch: the
// order of the pks is then that of the times.
func (i insertion) withPKs(creates batch) (batch, error) {
	if len(creates) == 0 {
		return nil, nil
	}
	pks, err := i.database.ReservePKs(i.tx, len(creates))
	if err != nil {
		return nil, fmt.Errorf("reserve pks: %w", err)
	}
	at := now()
	for n, one := range creates {
		if n >= len(pks) {
			one.err = ErrNoPKLeft
			continue
		}
		one.creation.PK, one.creation.CreatedAt = pks[n], at
	}
	return creates[:len(pks)], nil
}

// common writes the rows that providers of both kinds have, and returns the creates whose rows are in. Those whose key
// another program has just used are replays.
func (i insertion) common(creates batch) (batch, error) {
	rows := make([]*Creation, len(creates))
	for n, one := range creates {
		if one.digest != nil {
			var err error
			if one.creation.Fingerprint, err = i.keys.Fingerprint(one.digest); err != nil {
				return nil, fmt.Errorf("make fingerprint: %w", err)
			}
		}
		rows[n] = &one.creation
	}
	missing, err := insertNew(i.tx, rows, func(row *Creation) int32 { return row.PK })
	if err != nil || len(missing) == 0 {
		return creates, err
	}
	inserted, others := creates.split(missing)
	rest, err := i.withoutReplays(others)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d rows are neither stored nor replays", len(rest))
	}
	return inserted, nil
}

// kinds writes the rows of the kinds, and returns the creates whose rows are not in.
func (i insertion) kinds(creates batch) (batch, error) {
	var rows kindRows
	for _, one := range creates {
		if err := one.settings.addRow(&rows, i.keys, one.creation.PK); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(rows.oauth2, func(a, b *oauth2Row) int { return cmp.Compare(a.ClientID, b.ClientID) })
	missing, err := insertNew(i.tx, rows.oauth2, func(row *oauth2Row) int32 { return row.PK })
	if err != nil {
		return nil, err
	}
	left, err := insertNew(i.tx, rows.directories, func(row *workspaceDirectoryRow) int32 { return row.PK })
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%d rows are left out, though none of their values can be taken", len(left))
	}
	_, refused := creates.split(missing)
	return refused, nil
}

// withoutReplays leaves out the creates whose key made a record before, and says which.
func (i insertion) withoutReplays(creates batch) (batch, error) {
	var scopes [][]any
	for _, one := range creates {
		if scope, ok := one.creation.idempotencyScope(); ok {
			scopes = append(scopes, []any{scope.createdBy, scope.kind, scope.key})
		}
	}
	if len(scopes) == 0 {
		return slices.Clone(creates), nil
	}
	var made []Creation
	err := i.tx.Select("pk", "created_by", "kind", "idempotency_key", "fingerprint").
		Where("(created_by, kind, idempotency_key) IN ?", padded(scopes)).Find(&made).Error
	if err != nil {
		return nil, fmt.Errorf("look up idempotency keys: %w", err)
	}
	before := map[idempotencyScope]Creation{}
	for _, one := range made {
		scope, _ := one.idempotencyScope()
		before[scope] = one
	}
	return slices.DeleteFunc(slices.Clone(creates), func(one *create) bool {
		scope, hasKey := one.creation.idempotencyScope()
		first, ok := before[scope]
		if !hasKey || !ok {
			return false
		}
		one.replays = first.PK
		if !i.keys.Matches(first.Fingerprint, one.digest) {
			one.err = ErrKeyReused
		}
		return true
	}), nil
}

// split parts a batch by whether the pks of the creates are missing.
func (b batch) split(missing []int32) (inserted, others batch) {
	for _, one := range b {
		if slices.Contains(missing, one.creation.PK) {
			others = append(others, one)
		} else {
			inserted = append(inserted, one)
		}
	}
	return inserted, others
}

func pksOf(creates batch) []int32 {
	pks := make([]int32, len(creates))
	for n, one := range creates {
		pks[n] = one.creation.PK
	}
	return pks
}

// padded repeats the last element until there are a power of two: lists of few lengths make few statements, each of
// which is prepared once.
func padded[T any](list []T) []T {
	count := 1
	for count < len(list) {
		count *= 2
	}
	return append(slices.Clone(list), slices.Repeat(list[len(list)-1:], count-len(list))...)
}

// chunkSizes are the lengths of the lists of rows that one INSERT writes. They are few, because each is a prepared
// statement of its own.
func chunkSizes() []int { return []int{64, 32, 16, 8, 4, 2, 1} }

// insertNew inserts rows, and returns the pks of those that are left out because a unique value is taken.
func insertNew[Row any](tx *gorm.DB, rows []*Row, pkOf func(row *Row) int32) (missing []int32, err error) {
	for _, size := range chunkSizes() {
		for len(rows) >= size {
			chunk := rows[:size]
			inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&chunk)
			if inserted.Error != nil {
				return nil, fmt.Errorf("insert rows: %w", inserted.Error)
			}
			if inserted.RowsAffected < int64(size) {
				left, err := findMissing(tx, chunk, pkOf)
				if err != nil {
					return nil, err
				}
				missing = append(missing, left...)
			}
			rows = rows[size:]
		}
	}
	return missing, nil
}

func findMissing[Row any](tx *gorm.DB, rows []*Row, pkOf func(row *Row) int32) ([]int32, error) {
	pks := make([]int32, len(rows))
	for n, row := range rows {
		pks[n] = pkOf(row)
	}
	var stored []int32
	if err := tx.Model(new(Row)).Where("pk IN ?", padded(pks)).Pluck("pk", &stored).Error; err != nil {
		return nil, fmt.Errorf("look which rows are left out: %w", err)
	}
	return slices.DeleteFunc(pks, func(pk int32) bool { return slices.Contains(stored, pk) }), nil
}
