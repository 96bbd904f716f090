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
	"example.com/providerd/store/storetest/processtest"
)

func copyTo(from, to string) error {
	content, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, content, 0o600))
}

// The WAL that a crash left is kept if the database next to it is missing, empty or an older copy, into which SQLite
// would copy pages that do not belong to it. No database is created.
func TestWALOfAnotherDatabaseIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(t, "a")
	processtest.Must(t, copyTo(r.path, r.path+".older"))
	r.fill(t, "b")
	processtest.Must(t, r.commit(t.Context(), "c"))
	for name, test := range map[string]struct{ database, want string }{
		"older": {r.path + ".older", "-wal and -shm"}, "empty": {os.DevNull, "restore the database file"},
		"missing": {"", "restore the database file"},
	} {
		// Copy what a crash leaves to another directory.
		crashed := filepath.Join(t.TempDir(), "test.db")
		opens, err := []openFunc{sqlite.Create, sqlite.Create}, copyTo(r.path+"-wal", crashed+"-wal")
		if test.database != "" {
			opens, err = append(opens, sqlite.Open, sqlite.OpenForBackup), errors.Join(err, copyTo(test.database, crashed))
		}
		wal, readErr := os.ReadFile(crashed + "-wal")
		processtest.Must(t, err, readErr)
		for i, open := range opens {
			_, err := open(t.Context(), crashed, slog.New(slog.DiscardHandler))
			if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %d: error is %v, want ErrUnavailable with %q", name, i, err, test.want)
			}
		}
		if after, err := os.ReadFile(crashed + "-wal"); err != nil || string(after) != string(wal) {
			t.Errorf("%s: the WAL has %d bytes, not the %d that it had, %v", name, len(after), len(wal), err)
		}
		processtest.CheckAs(t, errors.Join(copyTo(r.path, crashed), create(t, crashed)), "%s", name)
	}
	r.close(t)
}

// tampering is a change to the files of a database, and the error it causes, after the name of the database.
type tampering struct {
	do      func() error
	message string
}

// older is an earlier content of the files.
type older struct{ database, wal, index []byte }

// tamperings are changes to a database whose WAL has two commits. The older wal-index is one commit behind, the other
// older files are from an earlier generation.
func (o older) tamperings(t *rapid.T, path string) map[string]tampering {
	const changed, lengthOfFrame = " does not match what SQLite wrote", 32 + 24 + 4096
	last := min(sizeOf(t, path+"-wal"), int64(len(o.wal)))
	all := map[string]tampering{
		"database overwritten": {func() error { return os.WriteFile(path, make([]byte, 10_000), 0o600) }, changed},
		"truncated database": {func() error {
			return os.Truncate(path, rapid.Int64Range(0, sizeOf(t, path)-1).Draw(t, "size"))
		}, changed},
		"older copy":         {func() error { return os.WriteFile(path, o.database, 0o600) }, changed},
		"older WAL":          {func() error { return os.WriteFile(path+"-wal", o.wal, 0o600) }, "-wal" + changed},
		"truncated WAL":      {func() error { return os.Truncate(path+"-wal", 0) }, "-wal" + changed},
		"WAL without a byte": {func() error { return os.Truncate(path+"-wal", lengthOfFrame-1) }, "-wal" + changed},
		"WAL partly overwritten": {func() error {
			return processtest.OverwriteBeginning(path+"-wal", o.wal[:rapid.Int64Range(24, last).Draw(t, "bytes")])
		}, "-wal" + changed},
		"older wal-index": {func() error { return processtest.OverwriteBeginning(path+"-shm", o.index) }, "-shm" + changed},
		// A commit writes the header from its own memory.
		"older wal-index under the header of a commit": {func() error {
			index, err := os.ReadFile(path + "-shm")
			const header = 136
			return errors.Join(err, processtest.OverwriteBeginning(path+"-shm", slices.Concat(index[:header], o.index[header:])))
		}, "-shm" + changed},
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		message := suffix + " was removed or replaced"
		all["removed "+suffix] = tampering{func() error { return os.Remove(path + suffix) }, message}
		all["replaced "+suffix] = tampering{func() error {
			return errors.Join(copyTo(path+suffix, path+".older"), os.Rename(path+".older", path+suffix))
		}, message}
	}
	return all
}

// After any legitimate use and one tampering, every open Database reports the damage and refuses commits.
func TestDamageIsDetected(t *testing.T) {
	t.Parallel()
	newDatabase := sharedDatabases(t)
	rapid.Check(t, func(rt *rapid.T) {
		d := newDatabase(rt)
		read := func(suffix string) []byte {
			content, err := os.ReadFile(d.path + suffix)
			processtest.Must(rt, err)
			return content
		}
		d.commit(rt)
		checkpoint(rt, d.conn, "PASSIVE")
		before := older{database: read(""), wal: read("-wal")}
		d.live(rt, 4)
		for _, reader := range d.readers {
			processtest.Must(rt, reader.Rollback())
		}
		d.readers = nil
		for range 2 {
			checkpoint(rt, d.conn, "RESTART")
			d.commit(rt)
		}
		before.index = read("-shm")
		d.commit(rt)
		d.check(rt)
		all := before.tamperings(rt, d.path)
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(rt, "tampering")
		processtest.Must(rt, all[name].do())
		want := filepath.Base(d.path) + all[name].message
		for i, r := range d.rigs {
			// A commit right after a check makes no check before it begins, so SQLite is the first to use the damaged files.
			if rapid.Bool().Draw(rt, "commit first") && r.insert("lost", 0) == nil {
				rt.Errorf("%s: database %d commits", name, i)
			}
			acts := map[string]func() error{
				"Check":  func() error { return r.Check(rt.Context()) },
				"Commit": func() error { return r.insert("lost", 0) },
				"Change": func() error { return r.Write(rt.Context(), executing()) },
				"Read":   func() error { return r.Read(rt.Context(), executing()) },
				"Find": func() error {
					_, err := r.Find(rt.Context(), database.Unique{})
					return err
				},
				"Close": r.Close,
			}
			for _, act := range rapid.Permutation(slices.Sorted(maps.Keys(acts))).Draw(rt, "acts") {
				err := acts[act]()
				if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), want) {
					rt.Errorf("%s: %s of database %d: %v, want %q", name, act, i, err, want)
				}
			}
			r.Abandon()
		}
		_, _ = d.conn.Close(), d.other.Close()
	})
}

// While a database is moved away, connections that a pool opens create no other one in its place, or in an empty file,
// beside which SQLite would delete the WAL.
func TestMovedDatabaseIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, isReplaced := range []bool{false, true} {
		r := newRig(t)
		processtest.Must(t, r.commit(t.Context(), "a"), os.Rename(r.path, r.path+".moved"))
		if isReplaced {
			processtest.Must(t, os.WriteFile(r.path, nil, 0o600))
		}
		before, refused := sizeOf(t, r.path+"-wal"), 0
		for range 4 {
			reading := r.Reader().WithContext(t.Context()).Begin()
			if err := reading.Error; errors.Is(err, database.ErrUnavailable) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
			defer reading.Rollback()
		}
		created, _ := os.ReadFile(r.path)
		if after := sizeOf(t, r.path+"-wal"); refused == 0 || before == 0 || after != before || len(created) > 0 {
			t.Errorf("%d connections were refused, and the WAL has %d bytes instead of %d", refused, after, before)
		}
		processtest.Must(t, os.Rename(r.path+".moved", r.path))
		processtest.Must(t, r.commit(t.Context(), "b"))
	}
}
