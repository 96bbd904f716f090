package store

import (
	"context"
	"errors"
	"fmt"

	"example.com/providerd/store/database"
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

// isInserted tells whether the rows of the create were written, as far as its transaction goes.
func (c *create) isInserted() bool { return c.err == nil && c.replays == 0 && !c.validateOnly }
