package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
)

// createStore opens the server's store, and creates a SQLite database that does not exist. It then tells the operator,
// who may have lost the previous one.
func createStore(ctx context.Context, f console.DatabaseFlags, log *serveLog) (*store.Store, error) {
	// The keyset of a new database is created after the database, so one that exists now is older.
	_, err := os.Stat(f.KeysetPath())
	hadKeyset := err == nil
	if f.Database.Path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; run \"providerd key create --keyset %s\" for an empty database, or copy the file "+
			"from another replica", store.ErrNoKeyset, f.KeysetPath(), f.KeysetPath())
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
		log.messages.Note("created the database %s with the keyset %s", f.Database.Path, f.KeysetPath())
		if hadKeyset {
			log.messages.Warn("the keyset %s is older than the new database; if %s was lost, stop the server and restore a "+
				"backup", f.KeysetPath(), f.Database.Path)
		}
	}
	return opened, nil
}
