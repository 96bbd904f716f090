package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

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
	path := filepath.Join(t.TempDir(), "test.db")
	opened, err := sqlite.Create(t.Context(), path, logger)
	if err != nil {
		t.Fatal(err)
	}
	batches, err := opened.Batches(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Database: opened, batches: batches, path: path}
}

// commit stores an application as a batch does its creates.
func (r *rig) commit(ctx context.Context, name string) error {
	err := r.batches.Commit(ctx, func(tx *gorm.DB) error { return insertApplication(tx, name) })
	r.batches.Maintain(ctx)
	return err
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

// fill commits until the WAL is reset, which follows a complete checkpoint: the file of the database is of a new
// generation then.
func (r *rig) fill(t *testing.T, name string) {
	t.Helper()
	const most = 5000
	before := r.salts(t)
	for i := range most {
		if err := r.commit(t.Context(), fmt.Sprint(name, i)); err != nil {
			t.Fatal(err)
		}
		if i > 0 && r.salts(t) != before {
			return
		}
	}
	t.Fatalf("the WAL is not reset after %d commits", most)
}

// salts are those in the header of the WAL, which tell its generations apart.
func (r *rig) salts(t *testing.T) [8]byte {
	t.Helper()
	wal, err := os.Open(r.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 32)
	// A WAL that was cut off has none.
	if _, err = wal.ReadAt(header, 0); errors.Is(err, io.EOF) {
		err = nil
	}
	if closeErr := wal.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	return [8]byte(header[16:24])
}
