package database

import "context"

// View is a database that is only looked at, whatever is wrong with it. Nothing is made or changed for it, and nobody
// is held up.
type View interface {
	Readable
	// Schema tells how far the database was migrated. It returns ErrNone for one without tables, ErrForeign or
	// ErrUnavailable.
	Schema(ctx context.Context) (Schema, error)
	// Close releases the database.
	Close() error
}
