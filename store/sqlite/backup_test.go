package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

func noProgress(int64, int64) {}

// noCheck accepts every backup.
func noCheck(database.Readable) error { return nil }

// A backup is rejected, and leaves nothing, if it lacks a row, though integrity_check finds nothing, or if the files of
// the database were replaced while it ran, so that it is unknown what was copied.
func TestWrongBackupIsRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	processtest.Must(t, r.insert("first", 10), r.insert("second", 10))
	for want, harm := range map[string]func(draft string){
		"entries:1 ": func(draft string) { storetest.Execute(t, draft, "DELETE FROM entries WHERE slug = 'first'") },
		"removed or replaced while in use": func(string) {
			if err := os.Rename(r.path+"-shm", r.path+"-shm.away"); err != nil {
				t.Error(err)
			}
		},
	} {
		dir := t.TempDir()
		err := r.Backup(t.Context(), filepath.Join(dir, "backup.db"), func(done, total int64) {
			drafts, err := filepath.Glob(filepath.Join(dir, ".backup.db[0-9]*"))
			if err != nil || len(drafts) != 1 || done != total {
				t.Fatalf("%d of %d bytes are copied to %v, %v", done, total, drafts, err)
			}
			harm(drafts[0])
		}, noCheck)
		if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("found %v, %v", left, err)
		}
		if err := os.Rename(r.path+"-shm.away", r.path+"-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	r.close(t)
}

// A database that a program opens while the backup is copied and checked is not replaced, whether it existed before or
// was created in the meantime.
func TestRestoreRechecksBeforeReplacing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	processtest.Must(t, r.commit(t.Context(), "kept"), r.Backup(t.Context(), backup, noProgress, noCheck))
	if err := r.commit(t.Context(), "later"); err != nil {
		t.Fatal(err)
	}
	r.close(t)
	restoration := sqlite.Restoration{
		Backup: backup, Database: r.path, Replace: true, Progress: noProgress, Restored: func(*gorm.DB) error { return nil },
	}
	var other processtest.Other
	restoration.Check = func(database.Readable) error {
		other = processtest.StartSelf(t, "commit", r.path)
		return nil
	}
	if kept, err := restoration.Run(t.Context()); !errors.Is(err, database.ErrInUse) || kept != "" {
		t.Errorf("error is %v, %q is kept", err, kept)
	}
	other.End(t)
	made := filepath.Join(t.TempDir(), "made.db")
	restoration.Database, restoration.Replace = made, false
	restoration.Check = func(database.Readable) error { return os.WriteFile(made, []byte("made"), 0o600) }
	if kept, err := restoration.Run(t.Context()); !errors.Is(err, fs.ErrExist) || kept != "" {
		t.Errorf("error is %v, %q is kept", err, kept)
	}
	if content, err := os.ReadFile(made); err != nil || string(content) != "made" {
		t.Errorf("content is %.20q, %v", content, err)
	}
	opened, err := openRig(t.Context(), r.path)
	processtest.Must(t, err)
	if got, want := opened.slugs(t), []string{"kept", "later", "of a program"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	opened.close(t)
}
