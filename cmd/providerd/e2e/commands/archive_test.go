//go:build slow

package commands_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// archive backs the database of servers up, and restores it elsewhere.
type archive interface {
	// backUp makes a backup at a path.
	backUp(t *testing.T, path string)
	// restore restores a backup, and returns its records.
	restore(t *testing.T, backup, keyset string) []providerdtest.Record
	// refuse restores a backup with the keyset of the servers, which must fail with a message.
	refuse(t *testing.T, backup, message string)
}

// sqliteArchive backs up with "providerd backup".
type sqliteArchive struct{ *providerdtest.Fleet }

func (a sqliteArchive) backUp(t *testing.T, path string) {
	t.Helper()
	a.RunCommand(t, "backup", path)
}

func (a sqliteArchive) restore(t *testing.T, backup, keyset string) []providerdtest.Record {
	t.Helper()
	dir := newDirWithKeyset(t, keyset)
	providerdtest.RunCommand(t, dir, "restore", backup)
	return providerdtest.Stored(t, dir)
}

func newDirWithKeyset(t *testing.T, keyset string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	providerdtest.RunShell(t, dir, "mkdir --mode=700 data; cp --preserve=mode "+keyset+" data/keyset.json")
	return dir
}

// refuse also checks that the database in the place is not replaced.
func (a sqliteArchive) refuse(t *testing.T, backup, message string) {
	t.Helper()
	dir := newDirWithKeyset(t, a.Keyset())
	place := filepath.Join(dir, "data", "providerd.db")
	providerdtest.Run(t, "cp", "--preserve=mode", filepath.Join(a.Dir, "data", "providerd.db"), place)
	before, err := os.ReadFile(place)
	processtest.Must(t, err)
	restore := providerdtest.Command(t.Context(), dir, "restore", backup, "--replace")
	providerdtest.ExpectExit(t, restore, providerdtest.ExitFailed, message)
	if after, err := os.ReadFile(place); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the database was replaced, %v", err)
	}
}

// postgresArchive backs up with pg_dump.
type postgresArchive struct {
	*providerdtest.Fleet
	cluster *postgrestest.Cluster
}

func (a postgresArchive) backUp(t *testing.T, path string) {
	t.Helper()
	providerdtest.Run(t, postgrestest.Binary(t, "pg_dump"), "--format=custom", "--file="+path, a.URL)
}

// restored returns the URL of a new database with the content of a backup.
func (a postgresArchive) restored(t *testing.T, backup string) (url string) {
	t.Helper()
	url = a.cluster.CreateDatabase(t)
	providerdtest.Run(t, postgrestest.Binary(t, "pg_restore"), "--exit-on-error", "--dbname="+url, backup)
	return url
}

func (a postgresArchive) restore(t *testing.T, backup, keyset string) []providerdtest.Record {
	t.Helper()
	return providerdtest.StoredAt(t, a.restored(t, backup), keyset)
}

func (a postgresArchive) refuse(t *testing.T, backup, message string) {
	t.Helper()
	list := a.Command(t.Context(), "PROVIDERD_DATABASE="+a.restored(t, backup), "provider", "list")
	providerdtest.ExpectExit(t, list, providerdtest.ExitFailed, message)
}
