package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest/processtest"
)

func noProgress(int64, int64) {}

// notRestored writes nothing to a restored database.
func notRestored(*gorm.DB) error { return nil }

// noCheck accepts every backup.
func noCheck(database.Readable) error { return nil }

func expectNothing(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("found %v, %v", entries, err)
	}
}

// A backup contains the state from when it began, regardless of what is committed while it runs, even if checkpoints
// write pages that are yet to be copied.
func TestBackupIsASnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 50 {
		if err := r.insert(fmt.Sprint("before", i), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Write(t.Context(), executing(`CREATE TABLE "another's ""own"".table?" (id)`)); err != nil {
		t.Fatal(err)
	}
	want := r.slugs(t)
	path := filepath.Join(t.TempDir(), "backup.db")
	steps := 0
	err := r.Backup(t.Context(), path, func(done, total int64) {
		steps++
		if done > total {
			t.Errorf("%d of %d bytes are copied", done, total)
		}
		if err := errors.Join(r.commit(t.Context(), fmt.Sprint("meanwhile", steps)), r.Write(t.Context(), executing(
			fmt.Sprintf("UPDATE entries SET name = 'changed' WHERE pk = %d", steps),
			fmt.Sprintf("DELETE FROM entries WHERE pk = %d", 50-steps)))); err != nil {
			t.Error(err)
		}
	}, func(copied database.Readable) error {
		var got []string
		err := copied.Reader().WithContext(t.Context()).Raw("SELECT slug FROM entries ORDER BY pk").Scan(&got).Error
		if !slices.Equal(got, want) {
			t.Errorf("the backup has %v, want %v", got, want)
		}
		return err
	})
	if err != nil || steps < 10 {
		t.Fatalf("after %d steps: %v", steps, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup is %v, %v", info, err)
	}
	opened, err := openRig(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if got := opened.slugs(t); !slices.Equal(got, want) {
		t.Errorf("opened, the backup has %v, want %v", got, want)
	}
	opened.close(t)
	r.close(t)
}

// A backup is rejected, and leaves nothing, if it lacks a row, though integrity_check finds nothing, or if the files of
// the database were replaced while it ran, so that it is unknown what was copied.
func TestWrongBackupIsRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := errors.Join(r.insert("first", 10), r.insert("second", 10)); err != nil {
		t.Fatal(err)
	}
	for want, harm := range map[string]func(draft string){
		"entries:1 ": func(draft string) { execute(t, draft, "DELETE FROM entries WHERE slug = 'first'") },
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
		expectNothing(t, dir)
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
	if err := errors.Join(r.commit(t.Context(), "kept"), r.Backup(t.Context(), backup, noProgress, noCheck)); err != nil {
		t.Fatal(err)
	}
	if err := r.commit(t.Context(), "later"); err != nil {
		t.Fatal(err)
	}
	r.close(t)
	restoration := sqlite.Restoration{Backup: backup, Database: r.path, Replace: true, Progress: noProgress, Restored: notRestored}
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
	if err != nil {
		t.Fatal(err)
	}
	if got, want := opened.slugs(t), []string{"kept", "later", "of a program"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	opened.close(t)
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
		Backup: backup, Database: r.path, Replace: true, Progress: noProgress, Check: noCheck, Restored: notRestored,
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
