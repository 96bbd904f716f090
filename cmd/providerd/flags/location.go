package flags

import (
	"context"
	"log/slog"
	"path/filepath"

	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

// place is the path of a file and its purpose.
type place struct{ what, path string }

// InitialTokenFile is the name of the file with the initial token, in the directory of a SQLite database.
const InitialTokenFile = "initial-token"

// SQLiteFile is the path of a SQLite database.
type SQLiteFile string

// Create implements Location.
func (f SQLiteFile) Create(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	return sqlite.Create(ctx, f.Path(), logger)
}

// CreateAlone implements Location.
func (f SQLiteFile) CreateAlone(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	return f.Create(ctx, logger)
}

// Open implements Location.
func (f SQLiteFile) Open(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	return sqlite.Open(ctx, f.Path(), logger)
}

// OpenReadOnly implements Location.
func (f SQLiteFile) OpenReadOnly(ctx context.Context) (database.View, error) {
	return sqlite.OpenReadOnly(ctx, f.Path())
}

// Migrate implements Location.
func (f SQLiteFile) Migrate(ctx context.Context, logger *slog.Logger, version int64) (previous int64, err error) {
	return sqlite.Migrate(ctx, f.Path(), logger, version)
}

// Path returns the path itself.
func (f SQLiteFile) Path() string { return string(f) }

// Dir returns the directory of the file that symbolic links lead to; SQLite keeps its other files there.
func (f SQLiteFile) Dir() string {
	if target, err := filepath.EvalSymlinks(f.Path()); err == nil {
		return filepath.Dir(target)
	}
	return filepath.Dir(f.Path())
}

// DefaultKeyset returns the path of keyset.json in the directory of the database.
func (f SQLiteFile) DefaultKeyset() string { return filepath.Join(f.Dir(), "keyset.json") }

func (f SQLiteFile) files() []place {
	path := files.Resolve(f.Path())
	return []place{{"the database", path}, {"the initial token", filepath.Join(filepath.Dir(path), InitialTokenFile)}}
}

func (SQLiteFile) hasPassword() bool { return false }

// PostgresURL is the URL of a PostgreSQL database.
type PostgresURL struct{ postgres.URL }

// Create implements Location.
func (u PostgresURL) Create(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	return postgres.Create(ctx, u.URL, logger)
}

// CreateAlone implements Location.
func (u PostgresURL) CreateAlone(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	return postgres.CreateAlone(ctx, u.URL, logger)
}

// Open implements Location.
func (u PostgresURL) Open(ctx context.Context, logger *slog.Logger) (database.Database, error) {
	return postgres.Open(ctx, u.URL, logger)
}

// OpenReadOnly implements Location.
func (u PostgresURL) OpenReadOnly(ctx context.Context) (database.View, error) {
	return postgres.OpenReadOnly(ctx, u.URL)
}

// Migrate implements Location.
func (u PostgresURL) Migrate(ctx context.Context, logger *slog.Logger, version int64) (previous int64, err error) {
	return postgres.Migrate(ctx, u.URL, logger, version)
}

// Path returns "".
func (PostgresURL) Path() string { return "" }

// Dir returns "".
func (PostgresURL) Dir() string { return "" }

// DefaultKeyset returns "".
func (PostgresURL) DefaultKeyset() string { return "" }

func (PostgresURL) files() []place { return nil }

func (u PostgresURL) hasPassword() bool { return u.HasPassword() }
