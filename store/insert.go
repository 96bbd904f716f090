package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// insertion writes the rows of a batch in an open transaction. Rows with a unique value that is taken are skipped, and
// their creates refused. Nothing else that a caller sends makes a statement fail, which would abort the transaction.
type insertion struct {
	database.Batch
	keys *seal.Keys
}

// insert writes the common rows first, because the rows of the kinds reference them. Each table is written in the order
// of its unique values, so that concurrent transactions wait for each other in one order and cannot deadlock.
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

// withoutDecided returns the creates to be written: all except replays and validations.
func (i insertion) withoutDecided(creates batch) (batch, error) {
	// Unique values come before keys: if another program commits a create with both in between, a create that finds the
	// client_id taken also finds the key.
	taken, err := creates.takenValues(i.Batch)
	if err != nil {
		return nil, err
	}
	fresh, err := creates.withoutReplays(i.Batch, i.keys)
	if err != nil {
		return nil, err
	}
	return fresh.withoutValidated(i.Batch, taken)
}

// removeRefused refuses creates whose client_id is taken and removes their common rows.
func (i insertion) removeRefused(creates batch) error {
	taken := map[string]bool{}
	for _, c := range creates {
		taken[c.settings.uniqueValue()] = true
		c.err = ErrClientIDTaken
	}
	var count int64
	err := i.DB().Model(&oauth2Row{}).Where("client_id IN ?", padded(slices.Sorted(maps.Keys(taken)))).Count(&count).Error
	if err != nil {
		return fmt.Errorf("find taken client_ids: %w", err)
	}
	if count != int64(len(taken)) {
		return fmt.Errorf("%w: it deleted a provider with a taken client_id", database.ErrRetry)
	}
	if err := i.DB().Delete(&Creation{}, "pk IN ?", padded(pksOf(creates))).Error; err != nil {
		return fmt.Errorf("remove rows of refused creates: %w", err)
	}
	return nil
}

// withPKs assigns pks and refuses the creates for which none is left. All get the time of the batch, so that pks and
// times are in the same order.
func (i insertion) withPKs(creates batch) (batch, error) {
	if len(creates) == 0 {
		return nil, nil
	}
	pks, err := i.ReservePKs(len(creates))
	if err != nil {
		return nil, fmt.Errorf("reserve pks: %w", err)
	}
	at := now()
	for n, c := range creates {
		if n >= len(pks) {
			c.err = ErrNoPKLeft
			continue
		}
		c.creation.PK, c.creation.CreatedAt = pks[n], at
	}
	return creates[:len(pks)], nil
}

// write writes the rows and returns the creates with a taken unique value, of which only the common rows are written.
func (i insertion) write(creates batch) (refused batch, err error) {
	common, err := i.commonRows(creates)
	if err != nil {
		return nil, err
	}
	var kinds kindRows
	for _, c := range creates {
		if err := c.settings.addRow(&kinds, i.keys, c.creation.PK); err != nil {
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
		return nil, fmt.Errorf("%w: it used the same idempotency key", database.ErrRetry)
	case directoriesLeft > 0:
		return nil, fmt.Errorf("%d rows were skipped, though none of their values can be taken", directoriesLeft)
	case oauth2Left == 0:
		return nil, nil
	}
	missing, err := i.findMissing(kinds.oauth2)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(creates, func(c *create) bool { return !slices.Contains(missing, c.creation.PK) }), nil
}

// commonRows returns the rows in the table that both kinds share.
func (i insertion) commonRows(creates batch) ([]*Creation, error) {
	rows := make([]*Creation, len(creates))
	for n, c := range creates {
		if err := c.addFingerprint(i.keys); err != nil {
			return nil, err
		}
		rows[n] = &c.creation
	}
	return rows, nil
}

// findMissing returns the pks of the rows that were skipped.
func (i insertion) findMissing(rows []*oauth2Row) ([]int32, error) {
	pks := make([]int32, len(rows))
	for n, row := range rows {
		pks[n] = row.PK
	}
	var stored []int32
	if err := i.DB().Model(&oauth2Row{}).Where("pk IN ?", padded(pks)).Pluck("pk", &stored).Error; err != nil {
		return nil, fmt.Errorf("find skipped rows: %w", err)
	}
	return slices.DeleteFunc(pks, func(pk int32) bool { return slices.Contains(stored, pk) }), nil
}
