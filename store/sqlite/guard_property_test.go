package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm"
	"pgregory.net/rapid"

	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest/processtest"
)

// checkpoint runs a checkpoint on a connection.
func checkpoint(t *rapid.T, conn *sql.Conn, mode string) {
	processtest.Must(t, run(t.Context(), conn, "PRAGMA wal_checkpoint("+mode+")"))
}

// sharedDatabase is a database file with all its users.
type sharedDatabase struct {
	path string
	// rigs are one to three open databases on the file. other is another program, with its readers.
	rigs    []*rig
	other   *sql.DB
	conn    *sql.Conn
	readers []*sql.Tx
	want    []string
}

// sharedDatabases returns a function that creates one. It copies a migrated database, which is faster than migrating
// again.
func sharedDatabases(t *testing.T) func(t *rapid.T) *sharedDatabase {
	t.Helper()
	whole := filepath.Join(t.TempDir(), "test.db")
	r := processtest.Try(createRig(t.Context(), whole, slog.New(slog.DiscardHandler))).Must(t)
	r.close(t)
	return func(rt *rapid.T) *sharedDatabase {
		d := &sharedDatabase{path: filepath.Join(t.TempDir(), "test.db")}
		processtest.Must(rt, copyTo(whole, d.path))
		d.connect(rt)
		return d
	}
}

func (d *sharedDatabase) open(t *rapid.T) {
	r := processtest.Try(openRig(t.Context(), d.path)).Must(t)
	d.rigs = append(d.rigs, r)
}

func (d *sharedDatabase) connect(t *rapid.T) {
	var err error
	d.other, err = sql.Open("sqlite3", "file:"+d.path+"?_busy_timeout=0")
	processtest.Must(t, err)
	d.conn, err = d.other.Conn(t.Context())
	processtest.Must(t, err)
	d.open(t)
}

func (d *sharedDatabase) close(t *rapid.T) {
	for _, reader := range d.readers {
		processtest.Must(t, reader.Rollback())
	}
	for _, r := range d.rigs {
		processtest.Must(t, r.Close())
	}
	processtest.Must(t, d.conn.Close(), d.other.Close())
	d.rigs, d.readers = nil, nil
}

func (d *sharedDatabase) any(t *rapid.T) *rig {
	return d.rigs[rapid.IntRange(0, len(d.rigs)-1).Draw(t, "rig")]
}

func (d *sharedDatabase) slug() string {
	d.want = append(d.want, fmt.Sprintf("%04d", len(d.want)))
	return d.want[len(d.want)-1]
}

func (d *sharedDatabase) commit(t *rapid.T) {
	size := rapid.SampledFrom([]int{0, 3000, 100_000}).Draw(t, "bytes")
	processtest.Must(t, d.any(t).insert(d.slug(), size))
}

// legitimate returns what may happen to a database in use.
func (d *sharedDatabase) legitimate() map[string]func(t *rapid.T) {
	return map[string]func(t *rapid.T){
		"commit": d.commit,
		"commit at the same time": func(t *rapid.T) {
			var group sync.WaitGroup
			errs := make([]error, len(d.rigs))
			for i, r := range d.rigs {
				slug := d.slug()
				group.Go(func() { errs[i] = errors.Join(r.insert(slug, 5000), r.Check(context.Background())) })
			}
			group.Wait()
			processtest.Must(t, errs...)
		},
		"change": func(t *rapid.T) {
			slug := d.slug()
			processtest.Must(t, d.any(t).Write(t.Context(), func(tx *gorm.DB) error { return insertEntry(tx, slug) }))
		},
		"change that fails": func(t *rapid.T) {
			errOwn := errors.New("own error of the statements")
			err := d.any(t).Write(t.Context(), func(tx *gorm.DB) error {
				return errors.Join(executing("UPDATE entries SET name = hex(zeroblob(3000))")(tx), errOwn)
			})
			if !errors.Is(err, errOwn) {
				t.Fatal(err)
			}
		},
		"insert that fails": func(t *rapid.T) {
			if err := d.any(t).insertRow(t.Context(), nil, ""); !errors.Is(err, database.ErrInsertApart) {
				t.Fatal(err)
			}
		},
		"shrink": func(t *rapid.T) {
			processtest.Must(t, d.any(t).Write(t.Context(), executing("UPDATE entries SET name = ''")))
		},
		"checkpoint": func(t *rapid.T) {
			checkpoint(t, d.conn, rapid.SampledFrom([]string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"}).Draw(t, "mode"))
		},
		"write by another program": func(t *rapid.T) {
			pages := rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "autocheckpoint")
			processtest.Must(t, run(t.Context(), d.conn, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", pages)),
				run(t.Context(), d.conn, "INSERT INTO entries (slug, name) VALUES (?, '')", d.slug()))
		},
		"vacuum": func(t *rapid.T) {
			if len(d.readers) > 0 {
				return
			}
			for _, statement := range []string{"UPDATE entries SET name = ''", "VACUUM"} {
				checkpoint(t, d.conn, "TRUNCATE")
				d.check(t)
				processtest.Must(t, run(t.Context(), d.conn, statement))
			}
			checkpoint(t, d.conn, "TRUNCATE")
		},
		"open": func(t *rapid.T) {
			if len(d.rigs) < 3 {
				d.open(t)
			}
		},
		"close": func(t *rapid.T) {
			if len(d.rigs) > 1 {
				processtest.Must(t, d.rigs[0].Close())
				d.rigs = d.rigs[1:]
			}
		},
		"all close, and one opens": func(t *rapid.T) {
			d.close(t)
			d.connect(t)
		},
		"reader opens": func(t *rapid.T) {
			reader, err := d.other.BeginTx(context.Background(), nil)
			processtest.Must(t, err)
			processtest.Try(reader.ExecContext(t.Context(), "SELECT count(*) FROM entries")).Must(t)
			d.readers = append(d.readers, reader)
		},
		"reader closes": func(t *rapid.T) {
			if len(d.readers) > 0 {
				processtest.Must(t, d.readers[0].Rollback())
				d.readers = d.readers[1:]
			}
		},
	}
}

// live takes up to so many legitimate actions.
func (d *sharedDatabase) live(t *rapid.T, most int) {
	actions := d.legitimate()
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(actions))), 0, most).Draw(t, "actions") {
		actions[name](t)
		d.check(t)
	}
}

// check checks that no action was taken for damage and nothing is lost.
func (d *sharedDatabase) check(t *rapid.T) {
	for i, r := range d.rigs {
		processtest.Must(t, r.Check(t.Context()))
		var stored []string
		processtest.Must(t, r.Reader().Raw("SELECT slug FROM entries ORDER BY slug").Scan(&stored).Error)
		processtest.Require(t, slices.Equal(stored, d.want), "database %d has %v, want %v", i, stored, d.want)
	}
}

// Legitimate use of the files, in any order, is not taken for damage.
func TestLegitimateUseIsNotDamage(t *testing.T) {
	t.Parallel()
	newDatabase := sharedDatabases(t)
	rapid.Check(t, func(rt *rapid.T) {
		d := newDatabase(rt)
		d.live(rt, 12)
		d.close(rt)
	})
}
