package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

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
	return i.removeRefused(refused)
}

// withoutDecided leaves out the creates for which nothing is to be written: replays, and those that are only validated.
func (i insertion) withoutDecided(creates batch) (batch, error) {
	// This comes before the keys: where another program commits a create with both meanwhile, whoever finds the client_id
	// taken finds the key, too.
	taken, err := creates.takenValues(i.Batch)
	if err != nil {
		return nil, err
	}
	rest, err := creates.withoutReplays(i.Batch, i.keys)
	if err != nil {
		return nil, err
	}
	return rest.withoutValidated(i.Batch, taken)
}

// removeRefused removes the common rows of creates whose client_id is taken, and refuses them.
func (i insertion) removeRefused(creates batch) error {
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
		return fmt.Errorf("%w: it deleted what had a client_id", database.ErrRetry)
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
		return nil, fmt.Errorf("%w: it used an idempotency key", database.ErrRetry)
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
		if err := one.addFingerprint(i.keys); err != nil {
			return nil, err
		}
		rows[n] = &one.creation
	}
	return rows, nil
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
