package database

import "context"

// View is a database that is only looked at, whatever is wrong with it. Nothing is made or changed for it, and nobody
// is held up.
type View interface {
	Readable
	// Schema tells how far the database was migrated. It returns ErrNoDatabase for one without tables, ErrForeign or
	// ErrUnavailable.
	Schema(ctx context.Context) (Schema, error)
	// Drift describes how the tables of a schema of this program's level, and what decides over their rows, differ from
	// those that its migrations make: the first few differences, none where there is none. It returns ErrUnavailable.
	Drift(ctx context.Context) ([]string, error)
	// Close releases the database.
	Close() error
}
