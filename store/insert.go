package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// create is one create on its way to the disk.
type create struct {
	creation Creation
	// digest is that of the body; nil without a key.
	digest   []byte
	settings settings
	// validateOnly tells that nothing is to be stored.
	validateOnly bool
	// timing is filled in; nil where nobody asked for it.
	timing *Timing
	// deadline is when its caller gives up; the zero time for never.
	deadline time.Time
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
// own. Its error is that of all of them. Where other keys are to be used before it ends, it begins again.
func (b batch) commit(ctx context.Context, db database.Batches, source keySource) error {
	err := errKeysChanged
	for errors.Is(err, errKeysChanged) {
		keys, keysErr := source.current(ctx)
		if keysErr != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, keysErr)
		}
		err = db.Commit(ctx, b.withoutKeys(), func(tx database.Batch) error {
			for _, one := range b {
				one.replays, one.err = 0, nil
			}
			if err := (insertion{Batch: tx, keys: keys}).insert(b); err != nil {
				return err
			}
			if !source.isCurrent(ctx, keys) {
				return errKeysChanged
			}
			return nil
		})
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		return b.settle(ctx, db, err)
	}
	return err
}

// withoutKeys counts the creates that are to be stored, and are no replays for sure.
func (b batch) withoutKeys() (count int) {
	for _, one := range b {
		if one.creation.IdempotencyKey == nil && !one.validateOnly {
			count++
		}
	}
	return count
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
// out, and their creates refused; nothing else that is sent makes a statement fail, so that every database can go on.
type insertion struct {
	database.Batch
	keys *seal.Keys
}

// insert writes the common rows first, because those of the kinds refer to them. Each table is written in the order
// of its unique values: transactions that wait for each other's rows then do so in one order.
func (i insertion) insert(creates batch) error {
	fresh, err := i.withoutDecided(creates)
	if err != nil {
		return err
	}
	slices.SortStableFunc(fresh, func(a, b *create) int { return a.creation.compareScope(b.creation) })
	if fresh, err = i.withPKs(fresh); err != nil || len(fresh) == 0 {
		return err
	}
	refused, err := i.write(fresh)
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
	err := i.DB().Model(&oauth2Row{}).Where("client_id IN ?", padded(slices.Sorted(maps.Keys(taken)))).Count(&count).Error
	if err != nil {
		return fmt.Errorf("look up taken values: %w", err)
	}
	if count != int64(len(taken)) {
		return fmt.Errorf("%w: it deleted what had a client_id", database.ErrOvertaken)
	}
	if err := i.DB().Delete(&Creation{}, "pk IN ?", padded(pksOf(creates))).Error; err != nil {
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
	pks, err := i.ReservePKs(len(creates))
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

// write writes the rows, and returns the creates of which a unique value is taken. Their common rows are in.
func (i insertion) write(creates batch) (refused batch, err error) {
	common, err := i.commonRows(creates)
	if err != nil {
		return nil, err
	}
	var kinds kindRows
	for _, one := range creates {
		if err := one.settings.addRow(&kinds, i.keys, one.creation.PK); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(kinds.oauth2, func(a, b *oauth2Row) int { return cmp.Compare(a.ClientID, b.ClientID) })
	left, err := i.Insert(common, kinds.oauth2, kinds.directories)
	if err != nil {
		return nil, fmt.Errorf("insert rows: %w", err)
	}
	switch commonLeft, oauth2Left, directoriesLeft := left[0], left[1], left[2]; {
	case commonLeft > 0:
		return nil, fmt.Errorf("%w: it used an idempotency key", database.ErrOvertaken)
	case directoriesLeft > 0:
		return nil, fmt.Errorf("%d rows are left out, though none of their values can be taken", directoriesLeft)
	case oauth2Left == 0:
		return nil, nil
	}
	missing, err := i.findMissing(kinds.oauth2)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(creates, func(one *create) bool { return !slices.Contains(missing, one.creation.PK) }), nil
}

// commonRows returns the rows that providers of both kinds have.
func (i insertion) commonRows(creates batch) ([]*Creation, error) {
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
	return rows, nil
}

// withoutReplays leaves out the creates whose key made a record before, and says which.
func (i insertion) withoutReplays(creates batch) (batch, error) {
	made, err := i.madeBefore(creates)
	if err != nil || len(made) == 0 {
		return slices.Clone(creates), err
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
			one.err = &KeyReusedError{PK: first.PK, scope: scope}
		}
		return true
	}), nil
}

// madeBefore returns the records that the keys of some creates made. A subquery for each key is one search in the index
// of the keys, whatever the database believes of the size of the table; a list of keys is planned each time, or read
// the table instead.
func (i insertion) madeBefore(creates batch) ([]Creation, error) {
	var scopes [][]any
	for _, one := range creates {
		if scope, ok := one.creation.idempotencyScope(); ok {
			scopes = append(scopes, []any{scope.createdBy, scope.kind, scope.key})
		}
	}
	if len(scopes) == 0 {
		return nil, nil
	}
	scopes = padded(scopes)
	const search = "coalesce((SELECT pk FROM providers WHERE created_by = column1 AND kind = column2 " +
		"AND idempotency_key = column3), 0)"
	var pks []int32
	list := "(VALUES " + strings.Repeat("(?,?,?),", len(scopes)-1) + "(?,?,?)) AS scopes"
	if err := i.DB().Table(list, slices.Concat(scopes...)...).Pluck(search, &pks).Error; err != nil {
		return nil, fmt.Errorf("look up idempotency keys: %w", err)
	}
	pks = slices.DeleteFunc(pks, func(pk int32) bool { return pk == 0 })
	if len(pks) == 0 {
		return nil, nil
	}
	var made []Creation
	err := i.DB().Select("pk", "created_by", "kind", "idempotency_key", "fingerprint").
		Where("pk IN ?", padded(pks)).Find(&made).Error
	if err != nil {
		return nil, fmt.Errorf("read the records of idempotency keys: %w", err)
	}
	return made, nil
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

// findMissing returns the pks of the rows that are not stored.
func (i insertion) findMissing(rows []*oauth2Row) ([]int32, error) {
	pks := make([]int32, len(rows))
	for n, row := range rows {
		pks[n] = row.PK
	}
	var stored []int32
	if err := i.DB().Model(&oauth2Row{}).Where("pk IN ?", padded(pks)).Pluck("pk", &stored).Error; err != nil {
		return nil, fmt.Errorf("look which rows are left out: %w", err)
	}
	return slices.DeleteFunc(pks, func(pk int32) bool { return slices.Contains(stored, pk) }), nil
}
