package postgres

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// settleInterval is the time between two checks for open transactions.
const settleInterval = 50 * time.Millisecond

// Settled returns the last key of each table, once all transactions have ended that may have reserved one. A reserved
// key is committed late if the server waits for a standby.
func (d *Database) Settled(ctx context.Context, tables []string) ([]int64, error) {
	reader := d.readers.GORM.WithContext(ctx)
	keys := make([]int64, len(tables))
	for i, table := range tables {
		var err error
		if keys[i], err = d.LastKey(reader, table); err != nil {
			return nil, err
		}
	}
	return keys, waitForOlder(ctx, reader)
}

// waitForOlder waits until every transaction that has an id has ended. All that reserve keys have one: BEGIN and the
// statements of a change write to the WAL before.
func waitForOlder(ctx context.Context, reader *gorm.DB) error {
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
