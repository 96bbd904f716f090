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

// setGeneration returns a statement. SQLite reads and writes user_version as a signed number.
func setGeneration(generation uint32) string {
	return fmt.Sprintf("PRAGMA user_version = %d", int32(generation)) //nolint:gosec // Only the bits matter.
}

// currentGeneration returns a function that reads the generation through SQLite, from the WAL if the page is there.
func currentGeneration(ctx context.Context, db *sql.DB) func() (uint32, error) {
	return func() (uint32, error) { return readGeneration(db.QueryRowContext(ctx, selectGeneration)) }
}

func readGeneration(row *sql.Row) (uint32, error) {
	var version int32
	if err := row.Scan(&version); err != nil {
		return 0, fmt.Errorf("read the generation of the database: %w", classify(err))
	}
	return uint32(version), nil //nolint:gosec // Only the bits matter.
}

// incrementGeneration increments the generation if a checkpoint has copied the whole WAL, because the next write resets
// the WAL. It must be called before the transaction writes anything else.
func incrementGeneration(ctx context.Context, files *guard.Files, tx gorm.ConnPool) error {
	isBackfilled, err := files.IsBackfilled()
	if err != nil || !isBackfilled {
		return err
	}
	generation, err := readGeneration(tx.QueryRowContext(ctx, selectGeneration))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, setGeneration(generation+1)); err != nil {
		return fmt.Errorf("increment the generation: %w", classify(err))
	}
	return nil
}
