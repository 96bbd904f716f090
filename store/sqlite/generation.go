package sqlite

import (
	"context"
	"fmt"

	"gorm.io/gorm"
)

// readGeneration reads the generation of a database, from the WAL if the page is there. It is the user_version, which
// SQLite stores at a fixed offset in the database header. Each transaction that resets the WAL increments it, so that
// an older copy of the file can be distinguished from the current one.
func readGeneration(ctx context.Context, db gorm.ConnPool) (uint32, error) {
	var version int32
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the generation of the database: %w", classify(err))
	}
	return uint32(version), nil //nolint:gosec // Only the bits matter.
}

// setGeneration writes the generation. SQLite reads and writes user_version as a signed number.
func setGeneration(ctx context.Context, db gorm.ConnPool, generation uint32) error {
	//nolint:gosec // Only the bits matter.
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", int32(generation))); err != nil {
		return fmt.Errorf("write the generation of the database: %w", classify(err))
	}
	return nil
}

// incrementGeneration increments the generation. It must be called before the transaction writes anything else.
func incrementGeneration(ctx context.Context, tx gorm.ConnPool) error {
	generation, err := readGeneration(ctx, tx)
	if err != nil {
		return err
	}
	return setGeneration(ctx, tx, generation+1)
}
