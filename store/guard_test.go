package store_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store"
)

// open opens a database that is not closed with the test, because its files are harmed.
func open(t *testing.T, path string) *store.Store {
	t.Helper()
	database, err := store.Create(t.Context(), "sqlite:"+path, "")
	if err != nil {
		t.Fatal(err)
	}
	return database
}

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

// fill makes creates until the WAL is reset, so that the file of the database is of a new generation.
func fill(t *testing.T, database *store.Store, name string) {
	t.Helper()
	const most = 5000
	if !database.AwaitReset(most, func(i int) {
		if err := database.Submit(t.Context(), fmt.Sprint(name, i)).Wait(); err != nil {
			t.Fatal(err)
		}
	}) {
		t.Fatalf("the WAL is not reset after %d creates", most)
	}
}

// Whatever is done to the files of an open database, nothing is acknowledged that is lost, and every change and the
// readiness fail with the same words.
func TestFilesThatAreHarmedWhileInUse(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]struct {
		how  func(path string) error
		says string
	}{
		"removed":               {os.Remove, "was removed or replaced"},
		"WAL removed":           {func(path string) error { return os.Remove(path + "-wal") }, "-wal was removed or replaced"},
		"wal-index removed":     {func(path string) error { return os.Remove(path + "-shm") }, "-shm was removed or replaced"},
		"replaced":              {func(path string) error { return os.Rename(path+".older", path) }, "was removed or replaced"},
		"WAL replaced":          {func(path string) error { return os.Rename(path+"-wal.older", path+"-wal") }, "-wal was removed or replaced"},
		"overwritten":           {func(path string) error { return os.WriteFile(path, make([]byte, 10_000), 0o600) }, "is not what SQLite left there"},
		"older copy":            {func(path string) error { return overwrite(path+".older", path) }, "is not what SQLite left there"},
		"WAL overwritten":       {func(path string) error { return overwrite(path+"-wal.older", path+"-wal") }, "-wal is not what SQLite left there"},
		"WAL cut off":           {func(path string) error { return os.Truncate(path+"-wal", 0) }, "-wal is not what SQLite left there"},
		"WAL cut off by a byte": {cutOffByAByte, "-wal is not what SQLite left there"},
		"cut off":               {func(path string) error { return os.Truncate(path, 0) }, "is not what SQLite left there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			database := open(t, path)
			fill(t, database, "a")
			if err := errors.Join(copyFile(path), copyFile(path+"-wal")); err != nil {
				t.Fatal(err)
			}
			fill(t, database, "b")
			if err := errors.Join(database.Submit(t.Context(), "before").Wait(), database.Ping(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := harm.how(path); err != nil {
				t.Fatal(err)
			}
			errs := map[string]error{
				"create": database.Submit(t.Context(), "after").Wait(), "Ping": database.Ping(t.Context()),
				"RevokeToken": database.RevokeToken(t.Context(), 1), "Close": database.Close(),
			}
			for what, err := range errs {
				if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), filepath.Base(path)) ||
					!strings.Contains(err.Error(), harm.says) {
					t.Errorf("%s: error is %v, want ErrUnavailable with %q", what, err, harm.says)
				}
			}
		})
	}
}

func copyFile(path string) error {
	content, err := os.ReadFile(path)
	return errors.Join(err, os.WriteFile(path+".older", content, 0o600))
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
	folder := t.TempDir()
	path := filepath.Join(folder, "test.db")
	database := open(t, path)
	fill(t, database, "a")
	if err := copyFile(path); err != nil {
		t.Fatal(err)
	}
	fill(t, database, "b")
	if err := database.Submit(t.Context(), "c").Wait(); err != nil {
		t.Fatal(err)
	}
	// What a crash leaves, in another folder.
	crashed := filepath.Join(t.TempDir(), "test.db")
	for from, to := range map[string]string{
		path + ".older": crashed, path + "-wal": crashed + "-wal",
		filepath.Join(folder, "keyset.json"): filepath.Join(filepath.Dir(crashed), "keyset.json"),
	} {
		content, err := os.ReadFile(from)
		if err := errors.Join(err, os.WriteFile(to, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	wal, err := os.ReadFile(crashed + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = store.Create(t.Context(), "sqlite:"+crashed, "")
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "-wal and -shm") {
			t.Errorf("error is %v, want ErrUnavailable", err)
		}
	}
	if after, err := os.ReadFile(crashed + "-wal"); err != nil || string(after) != string(wal) {
		t.Errorf("the WAL has %d bytes, not the %d that it had, %v", len(after), len(wal), err)
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
}
