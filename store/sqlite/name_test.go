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

// A database beside such a file would use or remove it, even if a link with another name leads to it.
func TestReservedNamesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := r.Backup(t.Context(), backup, noProgress, noCheck); err != nil {
		t.Fatal(err)
	}
	dir, discard := t.TempDir(), slog.New(slog.DiscardHandler)
	for _, name := range []string{"test.db-wal", "test.db-shm", "test.db-journal", "x-journal", "test.db.17.unfinished"} {
		path, link := filepath.Join(dir, name), filepath.Join(t.TempDir(), "link.db")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		_, createErr := sqlite.Create(t.Context(), link, discard)
		restore := sqlite.Restoration{Backup: backup, Database: link, Progress: noProgress, Check: noCheck}
		_, restoreErr := restore.Run(t.Context())
		backupErr := r.Backup(t.Context(), path, noProgress, noCheck)
		expectNothing(t, dir)
		err := os.WriteFile(path, nil, 0o600)
		_, openErr := sqlite.Open(t.Context(), link, discard)
		if err := errors.Join(err, os.Remove(path)); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{createErr, restoreErr, backupErr, openErr} {
			if !errors.Is(err, sqlite.ErrReservedName) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error is %v, want ErrReservedName", name, err)
			}
		}
	}
	for _, path := range []string{"x.db", "wal", "x-wal/x.db", "x-wal.db", "-walx"} {
		if err := sqlite.CheckName(path); err != nil {
			t.Error(err)
		}
	}
	r.close(t)
}
