package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm"
	"pgregory.net/rapid"
)

// checkpoint returns how many frames the WAL has, and how many of them are copied.
func checkpoint(t *rapid.T, conn *sql.Conn, mode string) {
	var busy, frames, copied int
	err := conn.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &copied)
	if err != nil {
		t.Fatalf("checkpoint %s: %v", mode, err)
	}
}

// household is one database file with all who use it.
type household struct {
	path string
	// rigs are one to three that have the database open, and other is another program, with its readers.
	rigs    []*rig
	other   *sql.DB
	conn    *sql.Conn
	readers []*sql.Tx
	want    []string
}

// newHouseholds returns how to make one with a new database. To copy one that is whole spares its migrations.
func newHouseholds(t *testing.T) func(t *rapid.T) *household {
	t.Helper()
	whole := filepath.Join(t.TempDir(), "test.db")
	if err := create(t, whole); err != nil {
		t.Fatal(err)
	}
	return func(rt *rapid.T) *household {
		h := &household{path: filepath.Join(t.TempDir(), "test.db")}
		h.must(rt, copyTo(whole, h.path))
		h.connect(rt)
		h.open(rt)
		return h
	}
}

func (h *household) must(t *rapid.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (h *household) open(t *rapid.T) {
	r, err := openRig(t.Context(), h.path)
	h.must(t, err)
	h.rigs = append(h.rigs, r)
}

func (h *household) connect(t *rapid.T) {
	var err error
	h.other, err = sql.Open("sqlite3", "file:"+h.path+"?_busy_timeout=0")
	h.must(t, err)
	h.conn, err = h.other.Conn(t.Context())
	h.must(t, err)
}

func (h *household) close(t *rapid.T) {
	for _, reader := range h.readers {
		h.must(t, reader.Rollback())
	}
	for _, r := range h.rigs {
		h.must(t, r.batches.Close(), r.Close())
	}
	h.must(t, h.conn.Close(), h.other.Close())
	h.rigs, h.readers = nil, nil
}

func (h *household) any(t *rapid.T) *rig {
	return h.rigs[rapid.IntRange(0, len(h.rigs)-1).Draw(t, "rig")]
}

func (h *household) slug() string {
	h.want = append(h.want, fmt.Sprintf("%04d", len(h.want)))
	return h.want[len(h.want)-1]
}

func (h *household) commit(t *rapid.T) {
	size := rapid.SampledFrom([]int{0, 3000, 100_000}).Draw(t, "bytes")
	h.must(t, h.any(t).insert(h.slug(), size))
}

// lawful is what may happen to a database that is in use.
func (h *household) lawful() map[string]func(t *rapid.T) {
	return map[string]func(t *rapid.T){
		"commit": h.commit,
		"commit at the same time": func(t *rapid.T) {
			var group sync.WaitGroup
			errs := make([]error, len(h.rigs))
			for i, r := range h.rigs {
				slug := h.slug()
				group.Go(func() { errs[i] = errors.Join(r.insert(slug, 5000), r.Check(context.Background())) })
			}
			group.Wait()
			h.must(t, errs...)
		},
		"change": func(t *rapid.T) {
			slug := h.slug()
			h.must(t, h.any(t).Change(t.Context(), func(tx *gorm.DB) error { return insertApplication(tx, slug) }))
		},
		"batch that fails": func(t *rapid.T) {
			err := h.any(t).inBatch(t.Context(), func(tx *gorm.DB) error {
				return errors.Join(executing("UPDATE applications SET name = hex(zeroblob(3000))")(tx), errOwn)
			})
			if !errors.Is(err, errOwn) {
				t.Fatal(err)
			}
		},
		"shrink": func(t *rapid.T) {
			h.must(t, h.any(t).Change(t.Context(), executing("UPDATE applications SET name = ''")))
		},
		"checkpoint": func(t *rapid.T) {
			checkpoint(t, h.conn, rapid.SampledFrom([]string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"}).Draw(t, "mode"))
		},
		"write by another program": func(t *rapid.T) {
			pages := rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "autocheckpoint")
			_, err := h.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", pages))
			h.must(t, err)
			_, err = h.conn.ExecContext(t.Context(), "INSERT INTO applications (slug, name) VALUES (?, '')", h.slug())
			h.must(t, err)
		},
		"vacuum": func(t *rapid.T) {
			if len(h.readers) > 0 {
				return
			}
			for _, statement := range []string{"UPDATE applications SET name = ''", "VACUUM"} {
				checkpoint(t, h.conn, "TRUNCATE")
				h.check(t)
				_, err := h.conn.ExecContext(t.Context(), statement)
				h.must(t, err)
			}
			checkpoint(t, h.conn, "TRUNCATE")
		},
		"open": func(t *rapid.T) {
			if len(h.rigs) < 3 {
				h.open(t)
			}
		},
		"close": func(t *rapid.T) {
			if len(h.rigs) > 1 {
				h.must(t, h.rigs[0].batches.Close(), h.rigs[0].Close())
				h.rigs = h.rigs[1:]
			}
		},
		"all close, and one opens": func(t *rapid.T) {
			h.close(t)
			h.connect(t)
			h.open(t)
		},
		"reader comes": func(t *rapid.T) {
			reader, err := h.other.BeginTx(context.Background(), nil)
			h.must(t, err)
			_, err = reader.ExecContext(t.Context(), "SELECT count(*) FROM applications")
			h.must(t, err)
			h.readers = append(h.readers, reader)
		},
		"reader goes": func(t *rapid.T) {
			if len(h.readers) > 0 {
				h.must(t, h.readers[0].Rollback())
				h.readers = h.readers[1:]
			}
		},
	}
}

// read returns what one of the files has.
func (h *household) read(t *rapid.T, suffix string) []byte {
	content, err := os.ReadFile(h.path + suffix)
	h.must(t, err)
	return content
}

// live does up to so many lawful things.
func (h *household) live(t *rapid.T, most int) {
	actions := h.lawful()
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(actions))), 0, most).Draw(t, "actions") {
		actions[name](t)
		h.check(t)
	}
}

// check is that nobody takes what happened for harm, and nothing is lost.
func (h *household) check(t *rapid.T) {
	for i, r := range h.rigs {
		h.must(t, r.Check(t.Context()))
		var stored []string
		h.must(t, r.Reader().Raw("SELECT slug FROM applications ORDER BY slug").Scan(&stored).Error)
		if !slices.Equal(stored, h.want) {
			t.Fatalf("database %d has %v, want %v", i, stored, h.want)
		}
	}
}

// Whatever lawful things happen to the files, in whatever order, the guard does not take them for harm.
func TestLawfulUseIsNoHarm(t *testing.T) {
	t.Parallel()
	newHousehold := newHouseholds(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := newHousehold(rt)
		h.live(rt, 12)
		h.close(rt)
	})
}
