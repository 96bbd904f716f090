package sqlite_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

// Only the header is read of a large file that is not a backup.
func TestForeignFileIsNotCopied(t *testing.T) {
	t.Parallel()
	header := make([]byte, 100)
	copy(header, "SQLite format 3\x00")
	binary.BigEndian.PutUint32(header[68:], 17)
	for name, content := range map[string][]byte{
		"zeros": make([]byte, 1<<20), "empty": nil, "short": []byte("SQLite format 3\x00"), "other program": header,
		"other magic": append([]byte("SQLite format 4\x00"), header[16:]...),
	} {
		path := filepath.Join(t.TempDir(), "backup.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		_, err := sqlite.Restoration{
			Backup: path, Database: filepath.Join(dir, "test.db"),
			Progress: func(int64, int64) { t.Errorf("%s: the file is copied", name) }, Check: noCheck,
		}.Run(t.Context())
		if !errors.Is(err, database.ErrForeign) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		expectNothing(t, dir)
	}
}

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
