package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/store/sqlite"
)

// Each of two restores in the same second keeps the database it replaces. The names of the next seconds are taken.
func TestEachReplacedDatabaseIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := r.Backup(t.Context(), backup, noProgress, noCheck); err != nil {
		t.Fatal(err)
	}
	r.close(t)
	for start, second := time.Now().UTC(), 0; second < 300; second++ {
		name := r.path + ".replaced-" + start.Add(time.Duration(second)*time.Second).Format("20060102T150405Z")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace := sqlite.Restoration{
		Backup: backup, Database: r.path, Replace: true, Progress: noProgress, Check: noCheck,
	}
	for range 2 {
		before, err := os.Stat(r.path)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := replace.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after, err := os.Stat(kept); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: %v", kept, err)
		}
	}
}
