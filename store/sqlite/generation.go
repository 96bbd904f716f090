package sqlite

import (
	"cmp"
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
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
}

// queryRow reads one row. It returns the error of a statement that cannot be prepared, for which the QueryRowContext of
// GORM's prepared statements returns a row that panics.
func queryRow(ctx context.Context, tx statements, query string, values ...any) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return cmp.Or(rows.Err(), sql.ErrNoRows) //nolint:wrapcheck // Callers say what they read.
	}
	return rows.Scan(values...) //nolint:wrapcheck // Callers say what they read.
}

// raiseGeneration is called before a transaction writes anything else: if a checkpoint has copied the whole WAL, the
// transaction resets it.
func (g *guard) raiseGeneration(ctx context.Context, tx statements) error {
	isCopied, err := g.isCopied()
	if err != nil || !isCopied {
		return err
	}
	var generation uint32
	if err := queryRow(ctx, tx, selectGeneration, &generation); err != nil {
		return fmt.Errorf("read the generation: %w", classify(err))
	}
	if _, err := tx.ExecContext(ctx, setGeneration(generation+1)); err != nil {
		return fmt.Errorf("raise the generation: %w", classify(err))
	}
	return nil
}
