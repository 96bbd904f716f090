package sqlite

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const selectSchemaVersion = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"

// checkSupport is part of each transaction: a later version of this program may have migrated the database since this
// one opened it. What it stores beside such a schema may be what nobody can read.
func (d *Database) checkSupport(tx *gorm.DB) error {
	var level int64
	err := tx.Raw(selectSchemaVersion).Scan(&level).Error
	return d.checkSchemaVersion(tx.Statement.Context, level, err)
}

// checkSchemaVersion judges a level that was read, perhaps with an error.
func (d *Database) checkSchemaVersion(ctx context.Context, level int64, err error) error {
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if level > d.level {
		return fmt.Errorf("%w: %w: its schema version is %d, newer than this program's %d; upgrade providerd",
			database.ErrUnavailable, database.ErrNewer, level, d.level)
	}
	return nil
}
