package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
)

// createStore opens the store of a server. The log says if the database is new, because one that was lost is not to be
// replaced unseen. A PostgreSQL database is never created.
func createStore(ctx context.Context, f flags.DatabaseFlags, log *serveLog) (*store.Store, error) {
	// The keyset of a new database is created after it, so that one found here is older, whoever creates them.
	_, err := os.Stat(f.KeysetPath())
	hadKeyset := err == nil
	db, err := f.Database.Create(ctx, log.Logger)
	if err != nil {
		return nil, err
	}
	opened, err := store.Create(ctx, db, f.KeysetPath())
	if err != nil {
		return nil, err
	}
	if created, ok := db.(*sqlite.Database); ok && created.IsNew() {
		sayCreated(f, log, hadKeyset)
	}
	return opened, nil
}

func sayCreated(f flags.DatabaseFlags, log *serveLog, hadKeyset bool) {
	path, keyset := f.Database.Path(), f.KeysetPath()
	log.say(slog.LevelInfo, fmt.Sprintf("made a new database at %s with the keyset %s", path, keyset))
	if hadKeyset {
		log.say(slog.LevelWarn, fmt.Sprintf("the keyset %s is older than the database; where %s was lost, stop the "+
			"server and restore a backup", keyset, path))
	}
}
