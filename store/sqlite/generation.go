package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/sqlite/guard"
)

// The generation of a database is kept as SQLite's user_version, which stands at a fixed place in the header of its
// file. The first transaction of each WAL raises it, so that an older copy of the file can be told from the newest.
const selectGeneration = "PRAGMA user_version"

func setGeneration(generation uint32) string {
	return fmt.Sprintf("PRAGMA user_version = %d", generation)
}

// currentGeneration returns what reads the generation as SQLite reads it.
func currentGeneration(ctx context.Context, db *sql.DB) func() (uint32, error) {
	return func() (generation uint32, err error) {
		if err := db.QueryRowContext(ctx, selectGeneration).Scan(&generation); err != nil {
			return 0, fmt.Errorf("read the generation of the database: %w", classify(err))
		}
		return generation, nil
	}
}

// raiseGeneration is called before a transaction writes anything else: if a checkpoint has copied the whole WAL, the
// transaction resets it.
func raiseGeneration(files *guard.Files, tx *gorm.DB) error {
	isBackfilled, err := files.IsBackfilled()
	if err != nil || !isBackfilled {
		return err
	}
	var generation uint32
	if err := tx.Raw(selectGeneration).Scan(&generation).Error; err != nil {
		return fmt.Errorf("read the generation: %w", err)
	}
	if err := tx.Exec(setGeneration(generation + 1)).Error; err != nil {
		return fmt.Errorf("increment the generation: %w", err)
	}
	return nil
}
