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

// InitialTokenFile is the name of the file with the token of a first start, in the folder of a SQLite database.
const InitialTokenFile = "initial-token"

// SQLiteFile is the path of a SQLite database.
type SQLiteFile string

func (f SQLiteFile) Create(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return sqlite.Create(ctx, f.Path(), logger)
}

func (f SQLiteFile) CreateAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return f.Create(ctx, logger)
}

func (f SQLiteFile) Open(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return sqlite.Open(ctx, f.Path(), logger)
}

func (f SQLiteFile) Look(ctx context.Context) (database.View, error) {
	return sqlite.Look(ctx, f.Path())
}

func (f SQLiteFile) Migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error) {
	return sqlite.Migrate(ctx, f.Path(), logger, level)
}

func (f SQLiteFile) Path() string { return string(f) }

// Folder follows symbolic links: SQLite's other files are beside the target.
func (f SQLiteFile) Folder() string {
	if target, err := filepath.EvalSymlinks(f.Path()); err == nil {
		return filepath.Dir(target)
	}
	return filepath.Dir(f.Path())
}

func (f SQLiteFile) DefaultKeyset() string { return filepath.Join(f.Folder(), "keyset.json") }

func (f SQLiteFile) files() []place {
	path := durable.Resolve(f.Path())
	return []place{{"the database", path}, {"the initial token", filepath.Join(filepath.Dir(path), InitialTokenFile)}}
}

func (SQLiteFile) hasPassword() bool { return false }

// PostgresURL is the URL of a PostgreSQL database.
type PostgresURL struct{ postgres.URL }

func (u PostgresURL) Create(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.Create(ctx, u.URL, logger)
}

func (u PostgresURL) CreateAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.CreateAlone(ctx, u.URL, logger)
}

func (u PostgresURL) Open(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.Open(ctx, u.URL, logger)
}

func (u PostgresURL) Look(ctx context.Context) (database.View, error) {
	return postgres.Look(ctx, u.URL)
}

func (u PostgresURL) Migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error) {
	return postgres.Migrate(ctx, u.URL, logger, level)
}

func (PostgresURL) Path() string { return "" }

func (PostgresURL) Folder() string { return "" }

func (PostgresURL) DefaultKeyset() string { return "" }

func (PostgresURL) files() []place { return nil }

func (u PostgresURL) hasPassword() bool { return u.HasPassword() }
