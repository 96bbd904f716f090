package sqlite

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const selectSchemaVersion = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"

// CheckSchema runs in each transaction, because a newer version of this program may have migrated the database
// meanwhile. That version might not be able to read what this program writes.
func (d *Database) CheckSchema(tx *gorm.DB) error {
	var version int64
	err := tx.Raw(selectSchemaVersion).Scan(&version).Error
	return d.checkSchemaVersion(tx.Statement.Context, version, err)
}

// checkSchemaVersion returns an error if reading the version failed, or ErrNewer if this program does not know it.
func (d *Database) checkSchemaVersion(ctx context.Context, version int64, err error) error {
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if version > d.schemaVersion {
		return fmt.Errorf("%w: %w: its schema version is %d, newer than this program's %d; upgrade providerd",
			database.ErrUnavailable, database.ErrNewer, version, d.schemaVersion)
	}
	return nil
}
