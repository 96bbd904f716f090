package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

const checkOfDatabase = "database"

// checkSQLite looks at a SQLite database, and at the folder that it is in.
func checkSQLite(ctx context.Context, file flags.SQLiteFile, keyset string) (found []finding) {
	path, folder := file.Path(), file.Folder()
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if _, err := os.Stat(folder); err == nil {
		found = checkPlace(path, folder, keyset)
	}
	view, err := sqlite.Look(ctx, path)
	if err != nil {
		found = append(found, failedBy(checkOfDatabase, err))
		if errors.Is(err, database.ErrNone) {
			return found
		}
		return append(found, checkKeysetAlone(keyset)...)
	}
	defer func() { _ = view.Close() }()
	if view.IsInUse() {
		found = append(found, passed(checkOfDatabase, "%s is in use by another program", path))
	} else {
		found = append(found, passed(checkOfDatabase, "%s is not in use", path))
	}
	return append(found, checkContent(ctx, view, keyset)...)
}

// checkPlace looks at the files, and at the disk that they are on.
func checkPlace(path, folder, keyset string) []finding {
	first, owner := checkFolder(folder)
	found := append([]finding{first}, checkDatabaseFiles(path, owner)...)
	found = append(found, checkSecondNames(path)...)
	found = append(found, checkKeysetFile(keyset, owner)...)
	found = append(found, checkInitialToken(folder, owner)...)
	wal := path + "-wal"
	return append(found, checkWAL(wal), checkSpace(folder, path, wal), checkFileSystem(folder))
}

// checkSecondNames finds what looks like a database that was kept, but is the one in use. Where that cannot be read,
// other checks say so.
func checkSecondNames(path string) (found []finding) {
	names, _ := sqlite.SecondNames(path)
	for _, name := range names {
		found = append(found, warned("database file", "remove that name",
			"%s is no kept copy but the database itself: a restore that was killed left it", name))
	}
	return found
}
