package sqlite

import (
	"context"
	"fmt"

	"gorm.io/gorm"
)

// Snapshot runs statements in a read transaction on a read-only connection. While they run, the WAL
// grows, because it cannot be reset.
func (d *Database) Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := d.files.Check(); err != nil {
		return err
	}
	tx := d.Reader().WithContext(ctx).Begin()
	if tx.Error != nil {
		return fmt.Errorf("begin: %w", tx.Error)
	}
	defer func() { _ = tx.Rollback() }()
	if err := statements(tx); err != nil {
		return err
	}
	return d.files.Check()
}

// loadCache is the page cache of a connection that loads, in KiB. Pages of indexes that do not fit are written often.
const loadCache = 128 << 10

// Load is Write with a large cache.
func (d *Database) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Write(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec(fmt.Sprintf("PRAGMA cache_size = -%d", loadCache)).Error; err != nil {
			return fmt.Errorf("set cache_size: %w", err)
		}
		if err := statements(tx); err != nil {
			return err
		}
		return check(tx)
	})
}
