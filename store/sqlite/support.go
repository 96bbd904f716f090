package sqlite

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const selectSchemaVersion = "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied"

// CheckSchema returns database.ErrNewer if this program does not know the schema version. It runs in each transaction,
// because a newer version of this program may have migrated the database since it was opened. That version might not be
// able to read what this program writes.
func (d *Database) CheckSchema(tx *gorm.DB) error {
	var version int64
	err := tx.Raw(selectSchemaVersion).Scan(&version).Error
	if err != nil && tx.Statement.Context.Err() == nil {
		err = fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if version > d.schemaVersion {
		return fmt.Errorf("%w: %w: its schema version is %d, newer than this program's %d; use a newer providerd",
			database.ErrUnavailable, database.ErrNewer, version, d.schemaVersion)
	}
	return nil
}
