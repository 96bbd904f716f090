package flags

import (
	"context"
	"log/slog"
	"path/filepath"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

// place is where a file is, or is to be.
type place struct{ what, path string }

// InitialTokenFile is the name of the file with the token of a first start, in the folder of a SQLite database.
const InitialTokenFile = "initial-token"

// SQLiteFile is the path of a SQLite database.
type SQLiteFile string

// Create is that of Location.
func (f SQLiteFile) Create(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return sqlite.Create(ctx, f.Path(), logger)
}

// CreateAlone is that of Location.
func (f SQLiteFile) CreateAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return f.Create(ctx, logger)
}

// Open is that of Location.
func (f SQLiteFile) Open(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return sqlite.Open(ctx, f.Path(), logger)
}

// OpenReadOnly is that of Location.
func (f SQLiteFile) OpenReadOnly(ctx context.Context) (database.View, error) {
	return sqlite.OpenReadOnly(ctx, f.Path())
}

// Migrate is that of Location.
func (f SQLiteFile) Migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error) {
	return sqlite.Migrate(ctx, f.Path(), logger, level)
}

// Path is the path itself.
func (f SQLiteFile) Path() string { return string(f) }

// Dir follows symbolic links: SQLite's other files are beside the target.
func (f SQLiteFile) Dir() string {
	if target, err := filepath.EvalSymlinks(f.Path()); err == nil {
		return filepath.Dir(target)
	}
	return filepath.Dir(f.Path())
}

// DefaultKeyset is the path of keyset.json in the folder of the database.
func (f SQLiteFile) DefaultKeyset() string { return filepath.Join(f.Dir(), "keyset.json") }

func (f SQLiteFile) files() []place {
	path := durable.Resolve(f.Path())
	return []place{{"the database", path}, {"the initial token", filepath.Join(filepath.Dir(path), InitialTokenFile)}}
}

func (SQLiteFile) hasPassword() bool { return false }

// PostgresURL is the URL of a PostgreSQL database.
type PostgresURL struct{ postgres.URL }

// Create is that of Location.
func (u PostgresURL) Create(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.Create(ctx, u.URL, logger)
}

// CreateAlone is that of Location.
func (u PostgresURL) CreateAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.CreateAlone(ctx, u.URL, logger)
}

// Open is that of Location.
func (u PostgresURL) Open(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.Open(ctx, u.URL, logger)
}

// OpenReadOnly is that of Location.
func (u PostgresURL) OpenReadOnly(ctx context.Context) (database.View, error) {
	return postgres.OpenReadOnly(ctx, u.URL)
}

// Migrate is that of Location.
func (u PostgresURL) Migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error) {
	return postgres.Migrate(ctx, u.URL, logger, level)
}

// Path is empty.
func (PostgresURL) Path() string { return "" }

// Dir is empty.
func (PostgresURL) Dir() string { return "" }

// DefaultKeyset is empty.
func (PostgresURL) DefaultKeyset() string { return "" }

func (PostgresURL) files() []place { return nil }

func (u PostgresURL) hasPassword() bool { return u.HasPassword() }
