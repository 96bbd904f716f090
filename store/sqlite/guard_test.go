package sqlite_test

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

func copyFile(path string) error { return copyTo(path, path+".older") }

func copyTo(from, to string) error {
	content, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, content, 0o600))
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
	// What a crash leaves, in another directory.
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

// harm is what is done to the files of a database, and what is said of it behind the name of the database.
type harm struct {
	do   func() error
	says string
}

// older is what the files of a database had before.
type older struct{ database, wal, index []byte }

// harms are those to a database whose WAL has two commits: the wal-index is older by one, the others are of an earlier
// generation.
func (o older) harms(t *rapid.T, path string) map[string]harm {
	const changed, lengthOfFrame = " does not match what SQLite wrote", 32 + 24 + 4096
	last := min(sizeOfFile(path+"-wal"), int64(len(o.wal)))
	all := map[string]harm{
		"database overwritten": {func() error { return os.WriteFile(path, make([]byte, 10_000), 0o600) }, changed},
		"database cut off": {func() error {
			return os.Truncate(path, rapid.Int64Range(0, sizeOfFile(path)-1).Draw(t, "size"))
		}, changed},
		"older copy":         {func() error { return os.WriteFile(path, o.database, 0o600) }, changed},
		"older WAL":          {func() error { return os.WriteFile(path+"-wal", o.wal, 0o600) }, "-wal" + changed},
		"WAL emptied":        {func() error { return os.Truncate(path+"-wal", 0) }, "-wal" + changed},
		"WAL without a byte": {func() error { return os.Truncate(path+"-wal", lengthOfFrame-1) }, "-wal" + changed},
		"WAL partly overwritten": {func() error {
			return overwriteBeginning(path+"-wal", o.wal[:rapid.Int64Range(24, last).Draw(t, "bytes")])
		}, "-wal" + changed},
		"older wal-index": {func() error { return overwriteBeginning(path+"-shm", o.index) }, "-shm" + changed},
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		says := suffix + " was removed or replaced"
		all["removed "+suffix] = harm{func() error { return os.Remove(path + suffix) }, says}
		all["replaced "+suffix] = harm{func() error {
			return errors.Join(copyFile(path+suffix), os.Rename(path+suffix+".older", path+suffix))
		}, says}
	}
	return all
}

func overwriteBeginning(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Close())
}

func sizeOfFile(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// After whatever lawful things one harm is done, every Database that has the file open tells of it, and commits no more.
func TestHarmIsNoticedWhereverItComes(t *testing.T) {
	t.Parallel()
	newHousehold := newHouseholds(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := newHousehold(rt)
		h.commit(rt)
		checkpoint(rt, h.conn, "PASSIVE")
		before := older{database: h.read(rt, ""), wal: h.read(rt, "-wal")}
		h.live(rt, 4)
		for _, reader := range h.readers {
			h.must(rt, reader.Rollback())
		}
		h.readers = nil
		for range 2 {
			checkpoint(rt, h.conn, "RESTART")
			h.commit(rt)
		}
		before.index = h.read(rt, "-shm")
		h.commit(rt)
		h.check(rt)
		all := before.harms(rt, h.path)
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(rt, "harm")
		h.must(rt, all[name].do())
		want := filepath.Base(h.path) + all[name].says
		for i, r := range h.rigs {
			// Right after a check, the one before a commit is spared: SQLite is the first to meet the harm. What it writes
			// then makes an older wal-index look like the newest.
			isFirst := name != "older wal-index" && rapid.Bool().Draw(rt, "commit first")
			if isFirst && r.insert("lost", 0) == nil {
				rt.Errorf("%s: database %d commits", name, i)
			}
			for act, err := range map[string]error{
				"Check": r.Check(rt.Context()), "Commit": r.insert("lost", 0),
				"Change": r.Change(rt.Context(), executing()), "Close": r.Close(),
			} {
				if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), want) {
					rt.Errorf("%s: %s of database %d says %v, want %q", name, act, i, err, want)
				}
			}
			h.must(rt, r.batches.Close())
			r.Abandon()
		}
		_ = h.conn.Close()
		_ = h.other.Close()
	})
}
