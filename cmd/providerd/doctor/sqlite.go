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

// checkSQLite checks a SQLite database and its directory.
func checkSQLite(ctx context.Context, file flags.SQLiteFile, keyset string) (found []finding) {
	path, dir := file.Path(), file.Dir()
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if _, err := os.Stat(dir); err == nil {
		found = checkFiles(path, dir, keyset)
	}
	view, err := sqlite.OpenReadOnly(ctx, path)
	if err != nil {
		found = append(found, failedBy(checkOfDatabase, err))
		if errors.Is(err, database.ErrNoDatabase) {
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
	if err := view.CheckIntegrity(ctx); err != nil {
		found = append(found, failedBy("integrity", err).as(healthFail, "restore a backup"))
	} else {
		found = append(found, passed("integrity", "SQLite finds each page, row and index intact"))
	}
	return append(found, checkContent(ctx, view, keyset)...)
}

// checkFiles checks the files and their disk.
func checkFiles(path, dir, keyset string) []finding {
	first, owner := checkDirectory(dir)
	found := append([]finding{first}, checkDatabaseFiles(path, owner)...)
	found = append(found, checkSecondNames(path)...)
	found = append(found, checkKeysetFile(keyset, owner)...)
	found = append(found, checkInitialToken(dir, owner)...)
	wal := path + "-wal"
	return append(found, checkSpace(dir, path, wal))
}

// checkSecondNames finds files that look like copies but are the database itself. Other checks report a directory that
// cannot be read.
func checkSecondNames(path string) (found []finding) {
	names, _ := sqlite.LeftoverLinks(path)
	for _, name := range names {
		found = append(found, warned("database file", "remove that name",
			"%s is not a copy but the database itself; an interrupted restore left this name", name))
	}
	return found
}
