package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/sqlite/guard"
)

// The generation of a database is its user_version, which SQLite stores at a fixed offset in the database header. Each
// transaction that resets the WAL increments it, so that an older copy of the file can be told from the current one.
const selectGeneration = "PRAGMA user_version"

func setGeneration(generation uint32) string {
	return fmt.Sprintf("PRAGMA user_version = %d", generation)
}

// currentGeneration returns a function that reads the generation through SQLite, from the WAL if the page is there.
func currentGeneration(ctx context.Context, db *sql.DB) func() (uint32, error) {
	return func() (generation uint32, err error) {
		if err := db.QueryRowContext(ctx, selectGeneration).Scan(&generation); err != nil {
			return 0, fmt.Errorf("read the generation of the database: %w", classify(err))
		}
		return generation, nil
	}
}

// incrementGeneration increments the generation if a checkpoint has copied the whole WAL, because the next write resets
// the WAL. It must be called before the transaction writes anything else.
func incrementGeneration(ctx context.Context, files *guard.Files, tx gorm.ConnPool) error {
	isBackfilled, err := files.IsBackfilled()
	if err != nil || !isBackfilled {
		return err
	}
	var generation uint32
	if err := tx.QueryRowContext(ctx, selectGeneration).Scan(&generation); err != nil {
		return fmt.Errorf("read the generation: %w", classify(err))
	}
	if _, err := tx.ExecContext(ctx, setGeneration(generation+1)); err != nil {
		return fmt.Errorf("increment the generation: %w", classify(err))
	}
	return nil
}
