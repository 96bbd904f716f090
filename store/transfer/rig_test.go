package transfer_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/transfer"
)

// place is the location of a database.
type place struct {
	// url locates a PostgreSQL database, and path a SQLite database.
	url, path string
}

// open opens or creates the database. The caller closes it.
func (p place) open(t *testing.T) database.Movable {
	t.Helper()
	if p.path != "" {
		db, err := sqlite.Create(t.Context(), p.path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	url, err := postgres.ParseURL(p.url)
	if err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Create(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// use is open, but closes the database when the test ends.
func (p place) use(t *testing.T) database.Movable {
	t.Helper()
	db := p.open(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newSQLite(t *testing.T) place {
	t.Helper()
	return place{path: filepath.Join(t.TempDir(), "test.db")}
}

// kinds returns functions that return an unused place for a database of each kind.
func kinds(t *testing.T) map[string]func(t *testing.T) place {
	t.Helper()
	cluster := postgrestest.NewCluster(t)
	return map[string]func(t *testing.T) place{
		"SQLite": newSQLite,
		"PostgreSQL": func(t *testing.T) place {
			t.Helper()
			return place{url: cluster.CreateDatabase(t)}
		},
	}
}

// filled returns a SQLite database with count providers, and a few rows in the other tables.
func filled(t *testing.T, count int) database.Movable {
	t.Helper()
	return filledPlace(t, count).use(t)
}

func filledPlace(t *testing.T, count int) place {
	t.Helper()
	at := newSQLite(t)
	if err := storetest.FillSQLite(t.Context(), at.path, count); err != nil {
		t.Fatal(err)
	}
	db := at.open(t)
	run(t, db,
		"INSERT INTO applications (slug, name, provider_pk) VALUES ('a', 'A', 1), ('b', 'B', 2), ('c', 'C', NULL)",
		"INSERT INTO backchannels (provider_pk, application_id) VALUES (3, 1), (10, 1)",
		`INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) VALUES
			('ci', 'pvd_a', @x, '["providers_oauth2_create"]', @at, @at)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return at
}

// copied returns another database with the same content, which is faster than filling one.
func (p place) copied(t *testing.T) place {
	t.Helper()
	other := newSQLite(t)
	content, err := os.ReadFile(p.path)
	if err := errors.Join(err, os.WriteFile(other.path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	return other
}

// run executes statements in one transaction. In them, @x stands for some bytes, @empty for none, and @at for a
// time.
func run(t *testing.T, db database.Movable, statements ...string) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *gorm.DB) error {
		for _, statement := range statements {
			var values []any
			if strings.Contains(statement, "@") {
				at := database.TimeOf(time.UnixMicro(1_800_000_000_250_000))
				values = []any{sql.Named("x", []byte("x")), sql.Named("empty", []byte{}), sql.Named("at", at)}
			}
			if err := tx.Exec(statement, values...).Error; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, db database.Movable) []transfer.Content {
	t.Helper()
	contents, err := transfer.Contents(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

// nothing is what a copy does at its end.
func nothing(*gorm.DB) error { return nil }

func noProgress(transfer.Step, int64, int64) {}

// sameKeyset gives a copy the keyset of its source.
func sameKeyset(source transfer.Keyset) (transfer.Keyset, error) { return source, nil }
