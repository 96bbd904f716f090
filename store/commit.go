package store

import (
	"context"
	"errors"
	"fmt"

	"example.com/providerd/store/database"
)

// settle determines the outcome of each create after a commit whose outcome is unknown. It reads in a new transaction
// on a fresh connection, and so finds only committed rows: a row with the pk and request id of a create is its record.
// If there is none, the outcome stays unknown, because the commit may still be in progress.
//
// It returns the error of reading.
func (b batch) settle(ctx context.Context, db database.Batches, unknown error) error {
	var inserted batch
	for _, c := range b {
		if c.isInserted() {
			inserted = append(inserted, c)
		}
	}
	stored := map[int32]string{}
	if len(inserted) > 0 {
		err := db.Commit(ctx, 0, func(tx database.Batch) error {
			var rows []Creation
			err := tx.DB().Select("pk", "request_id").Where("pk IN ?", padded(pksOf(inserted))).Find(&rows).Error
			if err != nil {
				return fmt.Errorf("look up the outcome: %w", err)
			}
			clear(stored)
			for _, row := range rows {
				stored[row.PK] = row.RequestID
			}
			return nil
		})
		if err != nil {
			return errors.Join(unknown, err)
		}
	}
	for _, c := range b {
		requestID, ok := stored[c.creation.PK]
		switch {
		case !c.isInserted():
			// Its outcome was read in a transaction that may be lost.
			c.err = fmt.Errorf("%w: %s", ErrUnavailable, unknown.Error())
		case !ok || requestID != c.creation.RequestID:
			c.err = unknown
		}
	}
	return nil
}

// commit stores the creates in one durable transaction. A create that is refused gets its own error; the error returned
// applies to all of them. If the database refuses a value, which aborts the transaction, both halves of the batch are
// committed on their own, until only the create with the value fails.
func (b batch) commit(ctx context.Context, db database.Batches, cache *keyCache) error {
	err := b.commitTogether(ctx, db, cache)
	if !errors.Is(err, database.ErrRefused) || len(b) == 1 {
		return err
	}
	for _, half := range []batch{b[:len(b)/2], b[len(b)/2:]} {
		if err := half.commit(ctx, db, cache); err != nil {
			for _, c := range half {
				c.err = err
			}
		}
	}
	return nil
}

// commitTogether is commit without halves.
func (b batch) commitTogether(ctx context.Context, db database.Batches, cache *keyCache) error {
	err := db.Commit(ctx, b.certainInserts(), func(tx database.Batch) error {
		for _, c := range b {
			c.replays, c.err = 0, nil
		}
		keys, err := cache.forVersion(tx.DB(), tx.KeysetVersion())
		if err != nil {
			return err
		}
		return insertion{Batch: tx, keys: keys}.insert(b)
	})
	if errors.Is(err, ErrOutcomeUnknown) {
		return b.settle(ctx, db, err)
	}
	return err
}
