package sqlite

import (
	"fmt"

	"gorm.io/gorm"
)

// The generation of a database is kept as SQLite's user_version, which stands at a fixed place in the header of its
// file. The first transaction of each WAL raises it, so that an older copy of the file can be told from the newest.
const selectGeneration = "PRAGMA user_version"

func setGeneration(generation uint32) string {
	return fmt.Sprintf("PRAGMA user_version = %d", generation)
}

// raiseGeneration is called before a transaction writes anything else: if a checkpoint has copied the whole WAL, the
// transaction resets it.
func (g *guard) raiseGeneration(tx *gorm.DB) error {
	isCopied, err := g.isCopied()
	if err != nil || !isCopied {
		return err
	}
	var generation uint32
	if err := tx.Raw(selectGeneration).Scan(&generation).Error; err != nil {
		return fmt.Errorf("read the generation: %w", err)
	}
	if err := tx.Exec(setGeneration(generation + 1)).Error; err != nil {
		return fmt.Errorf("raise the generation: %w", err)
	}
	return nil
}
