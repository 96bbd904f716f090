package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// lookForDatabase returns what tells an operator, once the database is open, whether it is a new one: one that was lost
// is not to be replaced unseen. A PostgreSQL database is never made.
func (f databaseFlag) lookForDatabase(log *serveLog) (tell func()) {
	path := f.Database.path
	if info, err := os.Stat(path); f.Database.isPostgres || err == nil && info.Size() > 0 {
		return func() {}
	}
	keyset := keysetPath(f.Keyset, filepath.Dir(path))
	_, err := os.Stat(keyset)
	return func() {
		log.say(slog.LevelInfo, fmt.Sprintf("made a new database at %s with the keyset %s", path, keyset))
		if err == nil {
			log.say(slog.LevelWarn, fmt.Sprintf("the keyset %s is older than the database; where %s was lost, stop the "+
				"server and restore a backup", keyset, path))
		}
	}
}
