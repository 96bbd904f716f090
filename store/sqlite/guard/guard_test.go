package guard_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/guard"
	"example.com/providerd/store/storetest/processtest"
)

// guarded is an open database with its guard, and two commits in its WAL. After the first, index was the wal-index.
type guarded struct {
	*guard.Guard
	path       string
	index      []byte
	db         *sql.DB
	generation int
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{path: filepath.Join(t.TempDir(), "test.db")}
	var err error
	g.db, err = sql.Open("sqlite3", "file:"+g.path+"?_journal_mode=WAL")
	processtest.Must(t, err)
	g.db.SetMaxOpenConns(1)
	processtest.Must(t, g.execute(t, "CREATE TABLE entries (slug)"))
	file, err := guard.Open(g.path)
	processtest.Must(t, err)
	g.Guard, err = guard.Watch(file)
	// Damaged files cannot be closed without an error.
	t.Cleanup(func() { _, _, _ = g.db.Close(), g.Close(), file.Close() })
	processtest.Must(t, err, g.commit(t))
	g.index, err = os.ReadFile(g.path + "-shm")
	processtest.Must(t, err, g.commit(t))
	return g
}

func (g *guarded) execute(t *testing.T, statement string) error {
	t.Helper()
	_, err := g.db.ExecContext(t.Context(), statement)
	return err
}

func (g *guarded) commit(t *testing.T) error {
	t.Helper()
	return g.commitWith(t, nothing, nothing)
}

func nothing() error { return nil }

// commitWith commits an entry, with errors of its statements and after COMMIT, which functions return.
func (g *guarded) commitWith(t *testing.T, during, after func() error) error {
	t.Helper()
	_, err := g.Commit(guard.Transaction{
		Begin: func() error { return g.execute(t, "BEGIN IMMEDIATE") },
		Run: func(resets bool) error {
			if resets {
				g.generation++
			}
			return errors.Join(g.execute(t, fmt.Sprintf("PRAGMA user_version = %d; INSERT INTO entries VALUES ('')", g.generation)), during())
		},
		Commit: func() error { return errors.Join(g.execute(t, "COMMIT"), after()) },
	})
	if err != nil {
		// There is none if it has committed or not begun.
		_ = g.execute(t, "ROLLBACK")
	}
	return err
}

// Changed files are found by a check, before a transaction begins, when its statements fail, and after a COMMIT, whose
// outcome is unknown then. A file that is moved back is used again; one whose content was changed is not.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		suffix, want string
		// change changes the file; nil moves it away.
		change func(g *guarded, path string) error
	}{
		"moved database":     {"", " was removed or replaced", nil},
		"moved WAL":          {"-wal", " was removed or replaced", nil},
		"moved wal-index":    {"-shm", " was removed or replaced", nil},
		"truncated database": {"", " does not match what SQLite wrote", func(_ *guarded, path string) error { return os.Truncate(path, 1) }},
		"truncated WAL":      {"-wal", " does not match what SQLite wrote", func(_ *guarded, path string) error { return os.Truncate(path, 1) }},
		"older wal-index": {"-shm", " does not match what SQLite wrote", func(g *guarded, path string) error {
			return processtest.OverwriteBeginning(path, g.index)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect := func(what string, err, sentinel error) {
				t.Helper()
				processtest.Expect(t, errors.Is(err, sentinel) && strings.Contains(err.Error(), "test.db"+test.suffix+test.want),
					"%s: error is %v, want %v with %q", what, err, sentinel, test.want)
			}
			change := func(g *guarded) func() error {
				return func() error {
					if test.change == nil {
						return os.Rename(g.path+test.suffix, g.path+".moved")
					}
					return test.change(g, g.path+test.suffix)
				}
			}
			g := newGuarded(t)
			err := g.commitWith(t, nothing, change(g))
			expect("COMMIT", err, database.ErrOutcomeUnknown)
			g = newGuarded(t)
			err = g.commitWith(t, func() error { return errors.Join(change(g)(), database.ErrUnavailable) }, nothing)
			expect("statements", err, database.ErrUnavailable)
			g = newGuarded(t)
			whole, err := os.ReadFile(g.path + test.suffix)
			processtest.Must(t, err, change(g)())
			expect("check", g.Check(), database.ErrUnavailable)
			err = g.commitWith(t, func() error { t.Error("the transaction has begun"); return nil }, nothing)
			expect("begin", err, database.ErrUnavailable)
			if test.change == nil {
				processtest.Must(t, os.Rename(g.path+".moved", g.path+test.suffix), g.Check(), g.commit(t))
				return
			}
			processtest.Must(t, processtest.OverwriteBeginning(g.path+test.suffix, whole))
			expect("restored", g.Check(), database.ErrUnavailable)
		})
	}
	g := newGuarded(t)
	err := g.commitWith(t, func() error { return processtest.OverwriteBeginning(g.path+"-shm", g.index) }, nothing)
	processtest.Expect(t, errors.Is(err, database.ErrUnavailable) && !errors.Is(err, database.ErrOutcomeUnknown),
		"older wal-index within a transaction: error is %v, want ErrUnavailable", err)
}

// A transaction fails with the error of each of its steps.
func TestErrorsOfSteps(t *testing.T) {
	t.Parallel()
	g, errOwn := newGuarded(t), errors.New("own error")
	for failing := range 3 {
		step := func(number int) error { return map[bool]error{true: errOwn}[number == failing] }
		_, err := g.Commit(guard.Transaction{
			Begin: func() error { return step(0) }, Run: func(bool) error { return step(1) }, Commit: func() error { return step(2) },
		})
		processtest.IsError(t, err, errOwn)
	}
}
