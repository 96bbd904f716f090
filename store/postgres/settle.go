package postgres

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// settleInterval is the time between two checks for open transactions.
const settleInterval = 50 * time.Millisecond

// Settle calls read, and then waits until every transaction that has an id has ended. All transactions that generate
// keys have one before: see secureStatement and secureInsert. A commit is late if the server waits for a standby.
//
// A row that is visible is not yet safe: a server that stops waiting for a standby shows rows that are lost once that
// standby is promoted. So confirm commits a transaction on the server that Settle has used, which makes sure that its
// standbys have all that read has seen.
func (d *Database) Settle(ctx context.Context, read func() error) (confirm func(context.Context) error, err error) {
	server, err := d.Instance(d.readers.GORM.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := read(); err != nil {
		return nil, err
	}
	if err := d.waitForOpen(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return d.confirm(ctx, server) }, nil
}

// Instance returns when the server started, which no other server shares.
func (d *Database) Instance(tx *gorm.DB) (start string, err error) {
	if err := tx.Raw("SELECT extract(epoch FROM pg_postmaster_start_time())::text").Scan(&start).Error; err != nil {
		return "", fmt.Errorf("identify the server: %w", err)
	}
	return start, nil
}

// waitForOpen waits until all transactions that are open now have ended.
func (d *Database) waitForOpen(ctx context.Context) error {
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

// confirm commits a transaction without rows on the server that started at this time.
func (d *Database) confirm(ctx context.Context, server string) error {
	err := d.transact(ctx, transactTimeout, func(tx *gorm.DB) error {
		start, err := d.Instance(tx)
		if err == nil && start != server {
			return fmt.Errorf("%w: another server has taken over", database.ErrUnavailable)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: confirm that standbys have what was read: %w", database.ErrUnavailable, err)
	}
	return nil
}
