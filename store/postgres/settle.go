package postgres

import (
	"context"
	"fmt"
	"time"
)

// settleInterval is the time between two checks for open transactions.
const settleInterval = 50 * time.Millisecond

// Settle waits until every transaction that has an id has ended. All that generate keys have one: BEGIN and the
// statements of a change write to the WAL before. A commit is late if the server waits for a standby.
func (d *Database) Settle(ctx context.Context) error {
	reader := d.readers.GORM.WithContext(ctx)
	var last string
	if err := reader.Raw("SELECT pg_current_xact_id()::text").Scan(&last).Error; err != nil {
		return fmt.Errorf("find open transactions: %w", err)
	}
	for {
		var isSettled bool
		err := reader.Raw("SELECT pg_snapshot_xmin(pg_current_snapshot()) > ?::text::xid8", last).Scan(&isSettled).Error
		if err != nil {
			return fmt.Errorf("find open transactions: %w", err)
		}
		if isSettled {
			return nil
		}
		select {
		case <-time.After(settleInterval):
		case <-ctx.Done():
			return fmt.Errorf("wait for open transactions: %w", ctx.Err())
		}
	}
}
