package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

// overwrite copies a file into another, which stays the same file, as cp does.
func overwrite(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, source.Close(), target.Close())
}

// Whatever is done to the files of an open database, nothing is acknowledged that is lost, and every change and the
// check fail with the same words.
func TestFilesThatAreHarmedWhileInUse(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]struct {
		how  func(path string) error
		says string
	}{
		"removed":                {os.Remove, "was removed or replaced"},
		"WAL removed":            {func(path string) error { return os.Remove(path + "-wal") }, "-wal was removed or replaced"},
		"wal-index removed":      {func(path string) error { return os.Remove(path + "-shm") }, "-shm was removed or replaced"},
		"replaced":               {func(path string) error { return os.Rename(path+".older", path) }, "was removed or replaced"},
		"WAL replaced":           {func(path string) error { return os.Rename(path+"-wal.older", path+"-wal") }, "-wal was removed or replaced"},
		"overwritten":            {func(path string) error { return os.WriteFile(path, make([]byte, 10_000), 0o600) }, "is not what SQLite left there"},
		"older copy":             {func(path string) error { return overwrite(path+".older", path) }, "is not what SQLite left there"},
		"WAL overwritten":        {func(path string) error { return overwrite(path+"-wal.older", path+"-wal") }, "-wal is not what SQLite left there"},
		"WAL partly overwritten": {overwriteBeginning, "-wal is not what SQLite left there"},
		"WAL cut off":            {func(path string) error { return os.Truncate(path+"-wal", 0) }, "-wal is not what SQLite left there"},
		"WAL cut off by a byte":  {cutOffByAByte, "-wal is not what SQLite left there"},
		"cut off":                {func(path string) error { return os.Truncate(path, 0) }, "is not what SQLite left there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.fill(t, "a")
			if err := errors.Join(copyFile(r.path), copyFile(r.path+"-wal")); err != nil {
				t.Fatal(err)
			}
			r.fill(t, "b")
			if err := errors.Join(r.commit(t.Context(), "before"), r.Check(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := harm.how(r.path); err != nil {
				t.Fatal(err)
			}
			errs := map[string]error{
				"Commit": r.commit(t.Context(), "after"), "Check": r.Check(t.Context()),
				"Change": r.Change(t.Context(), func(tx *gorm.DB) error { return insertApplication(tx, "changed") }),
				"Close":  errors.Join(r.batches.Close(), r.Close()),
			}
			for what, err := range errs {
				if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), filepath.Base(r.path)) ||
					!strings.Contains(err.Error(), harm.says) {
					t.Errorf("%s: error is %v, want ErrUnavailable with %q", what, err, harm.says)
				}
			}
		})
	}
}

func copyFile(path string) error { return copyTo(path, path+".older") }

func copyTo(from, to string) error {
	content, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, content, 0o600))
}

// overwriteBeginning writes a page of the older WAL over the beginning of the WAL, as dd does with conv=notrunc.
func overwriteBeginning(path string) error {
	content, err := os.ReadFile(path + "-wal.older")
	if err != nil {
		return err
	}
	wal, err := os.OpenFile(path+"-wal", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = wal.Write(content[:4096])
	return errors.Join(err, wal.Close())
}

func cutOffByAByte(path string) error {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return err
	}
	// The WAL may be longer than what it has of this generation, which its first frames are.
	return os.Truncate(path+"-wal", min(info.Size(), 32+24+4096)-1)
}

// An older copy of the database does not belong to the WAL that a crash left: applied to it, it would make a mixture.
func TestOlderCopyBesideTheWALOfANewerOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(t, "a")
	if err := copyFile(r.path); err != nil {
		t.Fatal(err)
	}
	r.fill(t, "b")
	if err := r.commit(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	// What a crash leaves, in another folder.
	crashed := filepath.Join(t.TempDir(), "test.db")
	if err := errors.Join(copyTo(r.path+".older", crashed), copyTo(r.path+"-wal", crashed+"-wal")); err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(crashed + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = sqlite.Create(t.Context(), crashed, slog.New(slog.DiscardHandler))
		if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), "-wal and -shm") {
			t.Errorf("error is %v, want ErrUnavailable", err)
		}
	}
	if after, err := os.ReadFile(crashed + "-wal"); err != nil || string(after) != string(wal) {
		t.Errorf("the WAL has %d bytes, not the %d that it had, %v", len(after), len(wal), err)
	}
	r.close(t)
}

// An older copy is noticed although it was another program's commit that reset the WAL, or that made the checkpoint.
func TestOlderCopyAfterAnothersCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	large := strings.Repeat("x", 8<<20)
	for i := range 3 {
		// More than 1,000 pages, after which SQLite makes a checkpoint of its own.
		err := r.Change(t.Context(), func(tx *gorm.DB) error { return insertApplication(tx, fmt.Sprint(i, large)) })
		if err := errors.Join(err, r.commit(t.Context(), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := copyFile(r.path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(r.Check(t.Context()), writeOver(r.path+".older", r.path)); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context()); !errors.Is(err, database.ErrUnavailable) {
		t.Errorf("Check: error is %v, want ErrUnavailable", err)
	}
	if err := r.commit(t.Context(), "after"); !errors.Is(err, database.ErrUnavailable) {
		t.Errorf("Commit: error is %v, want ErrUnavailable", err)
	}
}

// writeOver writes a file over the beginning of another, whose length stays.
func writeOver(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Close())
}

// A wal-index of an earlier moment makes SQLite write over what was committed since.
func TestOlderWALIndex(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := errors.Join(r.commit(t.Context(), "a"), copyFile(r.path+"-shm"), r.commit(t.Context(), "b")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Check(t.Context()), writeOver(r.path+"-shm.older", r.path+"-shm")); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context()); !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), "-shm is not") {
		t.Errorf("Check: error is %v, want ErrUnavailable", err)
	}
	if err := r.commit(t.Context(), "c"); !errors.Is(err, database.ErrUnavailable) {
		t.Errorf("Commit: error is %v, want ErrUnavailable", err)
	}
}

// A VACUUM by another program makes the file shorter, and nothing is lost.
func TestVacuumIsLawful(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	large := strings.Repeat("x", 1<<20)
	err := r.Change(t.Context(), func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO applications (slug, name) VALUES ('large', ?)", large).Error
	})
	if err := errors.Join(err, r.commit(t.Context(), "a")); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite3", r.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"PRAGMA wal_checkpoint(TRUNCATE)", "DELETE FROM applications WHERE slug = 'large'", "VACUUM",
		"PRAGMA wal_checkpoint(TRUNCATE)",
	} {
		if _, err := other.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if err := r.Check(t.Context()); err != nil {
			t.Errorf("after %s: %v", statement, err)
		}
	}
	if size := sizeOf(t, r.path); size > 1<<20 {
		t.Errorf("the database has %d bytes", size)
	}
	if err := errors.Join(r.commit(t.Context(), "b"), other.Close()); err != nil {
		t.Error(err)
	}
	r.close(t)
}
