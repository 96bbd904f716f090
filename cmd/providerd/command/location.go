package command

import (
	"context"
	"log/slog"
	"path/filepath"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/sqlite"
)

// initialTokenFile is the name of the file with the token of a first start, in the folder of a SQLite database.
const initialTokenFile = "initial-token"

// sqliteFile is the path of a SQLite database.
type sqliteFile string

func (f sqliteFile) create(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return sqlite.Create(ctx, f.path(), logger)
}

func (f sqliteFile) createAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return f.create(ctx, logger)
}

func (f sqliteFile) open(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return sqlite.Open(ctx, f.path(), logger)
}

func (f sqliteFile) look(ctx context.Context) (database.View, error) {
	return sqlite.Look(ctx, f.path())
}

func (f sqliteFile) migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error) {
	return sqlite.Migrate(ctx, f.path(), logger, level)
}

func (f sqliteFile) path() string { return string(f) }

// folder follows symbolic links: SQLite's other files are beside the target.
func (f sqliteFile) folder() string {
	if target, err := filepath.EvalSymlinks(f.path()); err == nil {
		return filepath.Dir(target)
	}
	return filepath.Dir(f.path())
}

func (f sqliteFile) defaultKeyset() string { return filepath.Join(f.folder(), "keyset.json") }

func (f sqliteFile) files() []place {
	path := durable.Resolve(f.path())
	return []place{{"the database", path}, {"the initial token", filepath.Join(filepath.Dir(path), initialTokenFile)}}
}

func (sqliteFile) hasPassword() bool { return false }

// postgresURL is the URL of a PostgreSQL database.
type postgresURL struct{ postgres.URL }

func (u postgresURL) create(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.Create(ctx, u.URL, logger)
}

func (u postgresURL) createAlone(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.CreateAlone(ctx, u.URL, logger)
}

func (u postgresURL) open(ctx context.Context, logger *slog.Logger) (database.Movable, error) {
	return postgres.Open(ctx, u.URL, logger)
}

func (u postgresURL) look(ctx context.Context) (database.View, error) {
	return postgres.Look(ctx, u.URL)
}

func (u postgresURL) migrate(ctx context.Context, logger *slog.Logger, level int64) (before int64, err error) {
	return postgres.Migrate(ctx, u.URL, logger, level)
}

func (postgresURL) path() string { return "" }

func (postgresURL) folder() string { return "" }

func (postgresURL) defaultKeyset() string { return "" }

func (postgresURL) files() []place { return nil }

func (u postgresURL) hasPassword() bool { return u.HasPassword() }
