//go:build slow

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
)

// TestComparisonFindsDifference changes a table between its copy and the comparison, and copies again, while the source
// changes.
func TestComparisonFindsDifference(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	for kind, newTarget := range map[string]func() (database.Database, error){
		"SQLite": func() (database.Database, error) {
			return sqlite.Create(t.Context(), filepath.Join(t.TempDir(), "test.db"), slog.New(slog.DiscardHandler))
		},
		"PostgreSQL": func() (database.Database, error) {
			url, err := postgres.ParseURL(cluster.CreateDatabase(t))
			if err != nil {
				return nil, err
			}
			return postgres.Create(t.Context(), url, slog.New(slog.DiscardHandler))
		},
	} {
		for table, damage := range map[string]string{
			"providers":    "UPDATE providers SET secret = @empty WHERE pk = 1",
			"tokens":       "UPDATE tokens SET revoked_at = @at",
			"applications": "UPDATE applications SET provider_pk = NULL WHERE id = 1",
			"backchannels": "UPDATE backchannels SET application_id = 2 WHERE provider_pk = 3",
			"events":       "UPDATE events SET subject = 1",
		} {
			t.Run(kind+"/"+table, func(t *testing.T) {
				t.Parallel()
				target, err := newTarget()
				if err != nil {
					t.Fatal(err)
				}
				expectDifference(t, &capturing{Database: target}, table, damage)
				if err := target.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func expectDifference(t *testing.T, target *capturing, table, damage string) {
	t.Helper()
	source, keyset := filled(t)
	_, err := store.Copy(t.Context(), source, target, keyset, func(step store.CopyStep, done, total int64) {
		if step == store.StepCopy && done == total {
			if err := run(target.tx, damage); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, store.ErrDiffers) || !strings.Contains(err.Error(), "in table "+table+";") {
		t.Errorf("error is %v", err)
	}
	hasChanged := false
	copied, err := store.Copy(t.Context(), source, target, keyset, func(store.CopyStep, int64, int64) {
		if hasChanged {
			return
		}
		hasChanged = true
		if err := source.Write(t.Context(), func(tx *gorm.DB) error {
			return run(tx, "DELETE FROM providers WHERE pk = 9", "UPDATE tokens SET name = 'other'")
		}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || copied[0].Rows != rowsCopied {
		t.Errorf("copied again: %v, %v", copied, err)
	}
}

// rowsCopied is the number of providers in a source.
const rowsCopied = 20

// filled returns a SQLite database with providers, and a few rows in the other tables, and its keyset.
func filled(t *testing.T) (db database.Database, keyset string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	if err := storetest.FillSQLite(t.Context(), path, rowsCopied); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Write(t.Context(), func(tx *gorm.DB) error {
		return run(tx, "INSERT INTO applications (slug, name, provider_pk) VALUES ('a', 'A', 1), ('b', 'B', 2), ('c', 'C', NULL)",
			"INSERT INTO backchannels (provider_pk, application_id) VALUES (3, 1), (10, 1)",
			`INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) VALUES
				('ci', 'pvd_a', @x, '["providers_oauth2_create"]', @at, @at)`)
	}); err != nil {
		t.Fatal(err)
	}
	return db, filepath.Join(dir, "keyset.json")
}

// run executes statements. In them, @x stands for some bytes, @empty for none, and @at for a time.
func run(tx *gorm.DB, statements ...string) error {
	at := database.TimeOf(time.UnixMicro(1_800_000_000_250_000))
	for _, statement := range statements {
		var values []any
		if strings.Contains(statement, "@") {
			values = []any{sql.Named("x", []byte("x")), sql.Named("empty", []byte{}), sql.Named("at", at)}
		}
		if err := tx.Exec(statement, values...).Error; err != nil {
			return err
		}
	}
	return nil
}

// capturing is a database that keeps the transaction of a load.
type capturing struct {
	database.Database
	tx *gorm.DB
}

func (d *capturing) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Database.Load(ctx, func(tx *gorm.DB) error {
		d.tx = tx
		return statements(tx)
	})
}
