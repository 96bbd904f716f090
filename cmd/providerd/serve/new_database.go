package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

// createStore opens the server's store, and creates a SQLite database that does not exist. It then tells the operator,
// who may have lost the previous one.
func createStore(ctx context.Context, f flags.DatabaseFlags, log *serveLog) (*store.Store, error) {
	// The keyset of a new database is created after the database, so one that exists now is older.
	_, err := os.Stat(f.KeysetPath())
	hadKeyset := err == nil
	if f.Database.Path() == "" && !hadKeyset {
		if err := requireDatabase(ctx, f, log); err != nil {
			return nil, err
		}
	}
	db, err := f.Database.Create(ctx, log.Logger, false)
	if err != nil {
		return nil, f.NameSource(err)
	}
	opened, err := store.Create(ctx, db, f.KeysetPath())
	if err != nil {
		return nil, f.NameSource(err)
	}
	if created, ok := db.(*sqlite.Database); ok && created.IsNew() {
		reportCreated(f, log, hadKeyset)
	}
	return opened, nil
}

// requireDatabase refuses an empty PostgreSQL database without a keyset file before it is migrated.
func requireDatabase(ctx context.Context, f flags.DatabaseFlags, log *serveLog) error {
	db, err := f.Database.Open(ctx, log.Logger)
	if errors.Is(err, database.ErrNoDatabase) {
		return fmt.Errorf("%w: %s; run providerd key create --keyset %s, or copy the file from another replica",
			store.ErrNoKeyset, f.KeysetPath(), f.KeysetPath())
	}
	if err != nil {
		return f.NameSource(err)
	}
	return db.Close()
}

func reportCreated(f flags.DatabaseFlags, log *serveLog, hadKeyset bool) {
	path, keyset := f.Database.Path(), f.KeysetPath()
	facts := []slog.Attr{slog.String("database", path), slog.String("keyset", keyset)}
	log.notify(slog.LevelInfo, fmt.Sprintf("created the database %s with the keyset %s", path, keyset),
		"created database", facts...)
	if hadKeyset {
		log.notify(slog.LevelWarn, fmt.Sprintf("the keyset %s is older than the new database; if %s was lost, stop the "+
			"server and restore a backup", keyset, path), "keyset is older than new database", facts...)
	}
}
