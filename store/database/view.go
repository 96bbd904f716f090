package database

import "context"

// View is a database opened for inspection, whatever its state. It creates and changes nothing, and blocks no one.
type View interface {
	Readable
	// Schema returns the schema version of the database. It returns ErrNoDatabase if there are no tables, ErrForeign or
	// ErrUnavailable.
	Schema(ctx context.Context) (Schema, error)
	// Drift describes the first few differences between the database, which must have this program's schema version, and
	// what its migrations create: tables and anything that affects their rows. It returns ErrUnavailable.
	Drift(ctx context.Context) ([]string, error)
	// Close releases the database.
	Close() error
}
