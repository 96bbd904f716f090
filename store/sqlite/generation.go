package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// The generation of a database is kept as SQLite's user_version, which stands at a fixed place in the header of its
// file. The first transaction of each WAL raises it, so that an older copy of the file can be told from the newest.
const selectGeneration = "PRAGMA user_version"

func setGeneration(generation uint32) string {
	return fmt.Sprintf("PRAGMA user_version = %d", generation)
}

// statements are what a transaction that has begun can run.
type statements interface {
	ExecContext(ctx context.Context, query string, arguments ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}

// raiseGeneration is called before a transaction writes anything else: if a checkpoint has copied the whole WAL, the
// transaction resets it.
func (g *guard) raiseGeneration(ctx context.Context, tx statements) error {
	isCopied, err := g.isCopied()
	if err != nil || !isCopied {
		return err
	}
	var generation uint32
	if err := tx.QueryRowContext(ctx, selectGeneration).Scan(&generation); err != nil {
		return fmt.Errorf("read the generation: %w", classify(err))
	}
	if _, err := tx.ExecContext(ctx, setGeneration(generation+1)); err != nil {
		return fmt.Errorf("raise the generation: %w", classify(err))
	}
	return nil
}
