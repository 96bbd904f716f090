package sqlite_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store/sqlite"
)

// reservedNames are names of files beside the database of a rig.
func reservedNames() []string {
	return []string{"test.db-wal", "test.db-shm", "test.db-journal", "x-journal", "test.db.17.unfinished"}
}

// A database beside such a file would use or remove it.
func TestReservedNamesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := r.Backup(t.Context(), backup, noProgress, noCheck); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range reservedNames() {
		path, link := filepath.Join(dir, name), filepath.Join(t.TempDir(), "link.db")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		_, createErr := sqlite.Create(t.Context(), link, slog.New(slog.DiscardHandler))
		_, restoreErr := sqlite.Restoration{
			Backup: backup, Database: link, Progress: noProgress, Check: noCheck,
		}.Run(t.Context())
		for what, err := range map[string]error{
			"create": createErr, "restore": restoreErr, "backup": r.Backup(t.Context(), path, noProgress, noCheck),
		} {
			if !errors.Is(err, sqlite.ErrReservedName) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s at %s: %v", what, name, err)
			}
		}
		expectNothing(t, dir)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(t.Context(), link, slog.New(slog.DiscardHandler)); !errors.Is(err, sqlite.ErrReservedName) {
			t.Errorf("open %s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"x.db", "wal", "x-wal/x.db", "x-wal.db", "-walx"} {
		if err := sqlite.CheckName(path); err != nil {
			t.Error(err)
		}
	}
	r.close(t)
}
