package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable/durabletest"
	"example.com/providerd/store/sqlite"
)

func noProgress(int64, int64) {}

// noCheck accepts every backup.
func noCheck(database.Readable) error { return nil }

// slugsOf returns the slugs in a backup.
func slugsOf(ctx context.Context, copied database.Readable) (slugs []string, err error) {
	err = copied.Reader().WithContext(ctx).Raw("SELECT slug FROM applications ORDER BY id").Scan(&slugs).Error
	return slugs, err
}

func expectNothing(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("found %v, %v", entries, err)
	}
}

// A backup contains the state from when it began, whatever is committed meanwhile, even if checkpoints write pages that
// are yet to be copied.
func TestBackupIsASnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 50 {
		if err := r.insert(fmt.Sprint("before", i), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Change(t.Context(), executing(`CREATE TABLE "another's ""own"".table?" (id)`)); err != nil {
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
		if err := errors.Join(r.commit(t.Context(), fmt.Sprint("meanwhile", steps)), r.Change(t.Context(), executing(
			fmt.Sprintf("UPDATE applications SET name = 'changed' WHERE id = %d", steps),
			fmt.Sprintf("DELETE FROM applications WHERE id = %d", 50-steps)))); err != nil {
			t.Error(err)
		}
	}, func(copied database.Readable) error {
		got, err := slugsOf(t.Context(), copied)
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

// A failed backup leaves no files, and no transaction on its connection.
func TestFailedBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.insert("large", 20<<20); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		progress func(cancel func()) sqlite.Progress
		check    sqlite.Check
		want     error
	}{
		"check": {func(func()) sqlite.Progress { return noProgress }, func(database.Readable) error { return errOwn }, errOwn},
		"context": {func(cancel func()) sqlite.Progress {
			return func(int64, int64) { cancel() }
		}, noCheck, context.Canceled},
	} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		err := r.Backup(ctx, filepath.Join(dir, "backup.db"), test.progress(cancel), test.check)
		cancel()
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error is %v", name, err)
		}
		expectNothing(t, dir)
	}
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := r.Backup(t.Context(), path, noProgress, noCheck); err != nil {
		t.Error(err)
	}
	if err := r.Backup(t.Context(), path, noProgress, noCheck); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an existing backup: %v", err)
	}
	r.close(t)
}

// A backup that lacks a row passes integrity_check and is rejected nevertheless.
func TestBackupMissingRowIsRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := errors.Join(r.insert("first", 10), r.insert("second", 10)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err := r.Backup(t.Context(), filepath.Join(dir, "backup.db"), func(done, total int64) {
		drafts, err := filepath.Glob(filepath.Join(dir, "backup.db.*.unfinished"))
		if err != nil || len(drafts) != 1 || done != total {
			t.Errorf("%d of %d bytes are copied to %v, %v", done, total, drafts, err)
			return
		}
		execute(t, drafts[0], "DELETE FROM applications WHERE slug = 'first'")
	}, noCheck)
	if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), "applications:1 ") {
		t.Errorf("error is %v", err)
	}
	expectNothing(t, dir)
	r.close(t)
}

// A restore does not start if the disk has too little space for the backup, which claims to have 8 TiB.
func TestRestoreChecksFreeSpace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup, dir := filepath.Join(t.TempDir(), "backup.db"), t.TempDir()
	if err := errors.Join(r.Backup(t.Context(), backup, noProgress, noCheck), os.Truncate(backup, 8<<40)); err != nil {
		t.Fatal(err)
	}
	r.close(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	restoration := sqlite.Restoration{
		Backup: backup, Database: filepath.Join(dir, "test.db"), Check: noCheck,
		Progress: func(int64, int64) { cancel() },
	}
	if _, err := restoration.Run(ctx); !errors.Is(err, database.ErrUnavailable) ||
		!strings.Contains(err.Error(), "MiB free, but 8388613 MiB are needed") {
		t.Errorf("error is %v", err)
	}
	expectNothing(t, dir)
}

// If the disk fails in the middle of a backup, no files are left.
func TestDiskFailsDuringBackup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.insert("large", 20<<20); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other := durabletest.Start(t, "back-up", r.path, filepath.Join(dir, "backup.db"))
	other.End(t)
	expectNothing(t, dir)
	r.close(t)
}

// If the database files were replaced, nobody knows what was copied.
func TestBackupOfDamagedFilesIsRejected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.insert("large", 20<<20); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err := r.Backup(t.Context(), filepath.Join(dir, "backup.db"), func(int64, int64) {
		if err := os.Rename(r.path+"-shm", r.path+"-shm.away"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}, noCheck)
	if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), "removed or replaced while in use") {
		t.Errorf("error is %v", err)
	}
	expectNothing(t, dir)
	if err := os.Rename(r.path+"-shm.away", r.path+"-shm"); err != nil {
		t.Error(err)
	}
	r.close(t)
}

// A database that a program opens while the backup is copied and checked is not replaced, whether it existed before or
// was created meanwhile.
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
	restoration := sqlite.Restoration{Backup: backup, Database: r.path, Replace: true, Progress: noProgress}
	var other *durabletest.Process
	restoration.Check = func(database.Readable) error {
		other = durabletest.Start(t, "commit", r.path, "last", "1")
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
	if got, want := opened.slugs(t), []string{"kept", "later", "last0"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	opened.close(t)
}
