package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain also runs the test binary as other programs, because SQLite's locks work between processes. "commit PATH"
// holds a database open until its standard input ends, and then commits.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"commit": processtest.Program(func(ctx context.Context, arguments []string) error {
			r, err := openRig(ctx, arguments[0])
			if err != nil {
				return err
			}
			return errors.Join(processtest.AwaitProceed(), r.commit(ctx, "of a program"), r.batches.Close(), r.Close())
		}),
		"fill-disk": processtest.Program(fillDisk),
	})
}

// rig is an open database with its Batches. The test does not close it automatically, because a damaged database cannot
// be closed.
type rig struct {
	*sqlite.Database
	batches database.Batches
	path    string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newLoggedRig(t, slog.New(slog.DiscardHandler))
}

func newLoggedRig(t *testing.T, logger *slog.Logger) *rig {
	t.Helper()
	r, err := createRig(t.Context(), filepath.Join(t.TempDir(), "test.db"), logger)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func createRig(ctx context.Context, path string, logger *slog.Logger) (*rig, error) {
	opened, err := sqlite.Create(ctx, path, logger)
	if err != nil {
		return nil, err
	}
	return connectRig(ctx, opened, path)
}

// openRig opens an existing database.
func openRig(ctx context.Context, path string) (*rig, error) {
	opened, err := sqlite.Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return connectRig(ctx, opened, path)
}

func connectRig(ctx context.Context, opened *sqlite.Database, path string) (*rig, error) {
	batches, err := opened.Batches(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	return &rig{Database: opened, batches: batches, path: path}, nil
}

// openFunc opens a database.
type openFunc func(ctx context.Context, path string, logger *slog.Logger) (*sqlite.Database, error)

// inBatch runs statements in a batch.
func (r *rig) inBatch(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return r.batches.Commit(ctx, 0, func(tx database.Batch) error { return statements(tx.DB()) })
}

// commit stores an application as a batch stores creates.
func (r *rig) commit(ctx context.Context, name string) error {
	err := r.commitRow(ctx, &inserted{Slug: name})
	r.batches.Maintain(ctx)
	return err
}

// insert stores an application with a name of so many bytes.
func (r *rig) insert(slug string, size int) error {
	err := r.commitRow(context.Background(), &inserted{Slug: slug, Name: strings.Repeat("0", size)})
	r.batches.Maintain(context.Background())
	return err
}

func (r *rig) commitRow(ctx context.Context, row *inserted) error {
	return r.batches.Commit(ctx, 0, func(tx database.Batch) error {
		_, err := tx.Insert([]*inserted{row})
		return err
	})
}

// read commits a batch that stores nothing, such as a replay. It also returns the error of CanStore.
func (r *rig) read(ctx context.Context) (canStore, err error) {
	err = r.batches.Commit(ctx, 0, func(tx database.Batch) error {
		canStore = tx.CanStore()
		return tx.DB().Raw("SELECT slug FROM applications").Scan(new([]string)).Error
	})
	return canStore, err
}

// inserted is a row whose id SQLite assigns.
type inserted struct{ Slug, Name string }

func (inserted) TableName() string { return "applications" }

func insertApplication(tx *gorm.DB, name string) error {
	return tx.Exec("INSERT INTO applications (slug, name) VALUES (?, '')", name).Error
}

// slugs returns the stored slugs.
func (r *rig) slugs(t *testing.T) []string {
	t.Helper()
	var slugs []string
	if err := r.Reader().WithContext(t.Context()).Raw("SELECT slug FROM applications ORDER BY id").Scan(&slugs).Error; err != nil {
		t.Fatal(err)
	}
	return slugs
}

func (r *rig) close(t *testing.T) {
	t.Helper()
	if err := r.batches.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// fill commits until checkpoints have written another generation to the database file and the WAL was reset. It
// continues until a concurrent checkpoint has most likely ended.
func (r *rig) fill(t *testing.T, name string) {
	t.Helper()
	const longest, more = time.Minute, 50
	salts, generation := r.salts(t), r.generation(t)
	left, start := more, time.Now()
	for i := 0; time.Since(start) < longest; i++ {
		if err := r.commit(t.Context(), fmt.Sprint(name, i)); err != nil {
			t.Fatal(err)
		}
		if r.salts(t) != salts && r.generation(t) != generation {
			left--
		}
		if left == 0 {
			return
		}
	}
	t.Fatalf("the WAL is not reset after %s", longest)
}

// generation returns the generation in the database file.
func (r *rig) generation(t *testing.T) [4]byte {
	t.Helper()
	return [4]byte(header(t, r.path)[60:])
}

// salts returns the salts in the WAL header, which change with each reset. A truncated WAL has none.
func (r *rig) salts(t *testing.T) [8]byte {
	t.Helper()
	return [8]byte(header(t, r.path+"-wal")[16:24])
}

// header returns the start of a file, padded with zeros.
func header(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	content := make([]byte, 64)
	if _, err := file.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return content
}

type commitFunc func(ctx context.Context, statements func(tx *gorm.DB) error) error

// ways are the ways to commit, which must behave alike.
func (r *rig) ways() map[string]commitFunc {
	return map[string]commitFunc{"Commit": r.inBatch, "Change": r.Change}
}

// executing returns a function that runs statements.
func executing(statements ...string) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error {
		for _, statement := range statements {
			// A PRAGMA may return rows, and keeps the transaction open until they are read.
			var answer []string
			if err := tx.Raw(statement).Scan(&answer).Error; err != nil {
				return err
			}
		}
		return nil
	}
}

// corruptSchema points the schema to a page that does not exist, until the transaction ends.
func corruptSchema(tx *gorm.DB) error {
	return executing("PRAGMA writable_schema = on",
		"UPDATE sqlite_master SET rootpage = 1000000 WHERE name = 'backchannels'", "PRAGMA writable_schema = reset")(tx)
}

var errOwn = errors.New("own error of the statements")
