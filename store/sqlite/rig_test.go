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

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

// rig is an open database with the one who commits batches. It is not closed with the test, because a harmed database
// is not.
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

// openRig opens a database that is there.
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

// inBatch commits statements in a batch.
func (r *rig) inBatch(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return r.batches.Commit(ctx, 0, func(tx database.Batch) error { return statements(tx.DB()) })
}

// commit stores an application as a batch does its creates.
func (r *rig) commit(ctx context.Context, name string) error {
	err := r.commitRow(ctx, &inserted{Slug: name})
	r.batches.Maintain(ctx)
	return err
}

// insert stores an application with a name of so many bytes.
func (r *rig) insert(slug any, size int) error {
	err := r.commitRow(context.Background(), &inserted{Slug: fmt.Sprint(slug), Name: strings.Repeat("0", size)})
	r.batches.Maintain(context.Background())
	return err
}

func (r *rig) commitRow(ctx context.Context, row *inserted) error {
	return r.batches.Commit(ctx, 0, func(tx database.Batch) error {
		_, err := tx.Insert([]*inserted{row})
		return err
	})
}

func insertApplication(tx *gorm.DB, name string) error {
	return tx.Exec("INSERT INTO applications (slug, name) VALUES (?, '')", name).Error
}

// slugs reads what is stored.
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

// fill commits until checkpoints have brought another generation to the file of the database, and the WAL was reset. It
// goes on until a checkpoint that runs beside it has very likely ended.
func (r *rig) fill(t *testing.T, name string) {
	t.Helper()
	const longest, more = time.Minute, 50
	salts, generation := r.salts(t), r.generation(t)
	left, begun := more, time.Now()
	for i := 0; time.Since(begun) < longest; i++ {
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

// generation is the one in the file of the database.
func (r *rig) generation(t *testing.T) [4]byte {
	t.Helper()
	return [4]byte(header(t, r.path)[60:])
}

// salts are those in the header of the WAL, which tell its generations apart. A WAL that was cut off has none.
func (r *rig) salts(t *testing.T) [8]byte {
	t.Helper()
	return [8]byte(header(t, r.path+"-wal")[16:24])
}

// header is how a file begins, with zeros for what it does not have.
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

// ways are those to commit, of which the seam says the same.
func (r *rig) ways() map[string]commitFunc {
	return map[string]commitFunc{"Commit": r.inBatch, "Change": r.Change}
}

// executing returns statements that are run one after the other.
func executing(statements ...string) func(tx *gorm.DB) error {
	return func(tx *gorm.DB) error {
		for _, statement := range statements {
			// A PRAGMA may answer, and holds its transaction open until that is read.
			var answer []string
			if err := tx.Raw(statement).Scan(&answer).Error; err != nil {
				return err
			}
		}
		return nil
	}
}

// damage makes the schema point where no page is, until the transaction ends.
func damage(tx *gorm.DB) error {
	return executing("PRAGMA writable_schema = on",
		"UPDATE sqlite_master SET rootpage = 1000000 WHERE name = 'backchannels'", "PRAGMA writable_schema = reset")(tx)
}

var errOwn = errors.New("own error of the statements")

// patience is far more than what is awaited takes.
const patience = 30 * time.Second
