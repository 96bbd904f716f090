package store

import (
	"context"
	"errors"
	"fmt"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// settle gives each create of a batch the outcome that the database did not tell. It looks on a fresh connection, in a
// transaction of its own, so that it finds what is stored for good: a record with the pk and the request id of a create
// is its own. One that is not there may still come, because the commit may still be under way.
//
// It returns the error of the look-up.
func (b batch) settle(ctx context.Context, db database.Batches, unknown error) error {
	var inserted batch
	for _, one := range b {
		if one.isInserted() {
			inserted = append(inserted, one)
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
	for _, one := range b {
		requestID, ok := stored[one.creation.PK]
		switch {
		case !one.isInserted():
			// What was decided about it was read in a transaction that may be lost.
			one.err = fmt.Errorf("%w: %s", ErrUnavailable, unknown.Error())
		case !ok || requestID != one.creation.RequestID:
			one.err = unknown
		}
	}
	return nil
}

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

// keySource gives the keys to seal with.
type keySource interface {
	// current returns the keys of now.
	current(ctx context.Context) (*seal.Keys, error)
	// isCurrent reports whether they still are. A transaction asks that before it commits what they have sealed: what was
	// found after a change of the keys to be sealed with none but the new ones stays so.
	isCurrent(ctx context.Context, keys *seal.Keys) bool
}

// errKeysChanged says that what was written is sealed with keys that are not those of now. It is written again.
var errKeysChanged = errors.New("the keys have changed meanwhile")
