package postgres_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// newKeyset creates a keyset file.
func newKeyset(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if _, err := seal.ReadOrCreateMasterKeys(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// parse parses a valid URL.
func parse(t *testing.T, url string) postgres.URL {
	t.Helper()
	parsed, err := postgres.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// create opens the database of a URL and closes it with the test.
func create(t *testing.T, url string) *postgres.Database {
	t.Helper()
	opened, err := postgres.Create(t.Context(), parse(t, url), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// newMigrated returns the URL of a new, migrated database that nobody uses.
func newMigrated(t *testing.T, cluster *postgrestest.Cluster) string {
	t.Helper()
	address := cluster.CreateDatabase(t)
	if err := createAlone(t, address); err != nil {
		t.Fatal(err)
	}
	return address
}

func createAlone(t *testing.T, url string) error {
	t.Helper()
	opened, err := postgres.CreateAlone(t.Context(), parse(t, url), slog.New(slog.DiscardHandler))
	if err == nil {
		err = opened.Close()
	}
	return err
}

// openStore opens a store over the database of a URL as a replica does, and closes it with the test.
func openStore(t *testing.T, url, keyset string) *store.Store {
	t.Helper()
	opened, err := storetest.CreatePostgres(t.Context(), url, keyset)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// with adds parameters to a URL.
func with(url string, parameters ...string) string {
	return url + "&" + strings.Join(parameters, "&")
}

// insert commits an application in a batch.
func insert(ctx context.Context, database *postgres.Database, slug string) error {
	return commit(ctx, database, func(tx *gorm.DB) error { return insertApplication(tx, slug) })
}

// insertNamed commits an application with a name and a random slug.
func insertNamed(ctx context.Context, database *postgres.Database, name string) error {
	return commit(ctx, database, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO applications (slug, name) VALUES (?, ?)", rand.Text(), name).Error
	})
}

// commit commits statements in a batch.
func commit(ctx context.Context, opened *postgres.Database, statements func(tx *gorm.DB) error) error {
	batches, err := opened.Batches(ctx)
	if err != nil {
		return err
	}
	return batches.Commit(ctx, 0, func(tx database.Batch) error { return statements(tx.DB()) })
}

func insertApplication(tx *gorm.DB, slug string) error {
	return tx.Exec("INSERT INTO applications (slug, name) VALUES (?, '')", slug).Error
}

// slugs returns the slugs of the stored applications.
func slugs(t *testing.T, database *postgres.Database) []string {
	t.Helper()
	var slugs []string
	err := database.Reader().WithContext(t.Context()).Raw("SELECT slug FROM applications ORDER BY id").Scan(&slugs).Error
	if err != nil {
		t.Fatal(err)
	}
	return slugs
}

// databaseOf returns the name of the database of a URL.
func databaseOf(t *testing.T, text string) string {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(parsed.Path, "/")
}

func awaitReady(t *testing.T, opened *store.Store) {
	t.Helper()
	processtest.WaitUntil(t, "the store is ready", func() bool { return opened.Ready(t.Context()) == nil })
}

// awaitWait waits until a backend has the wait event.
func awaitWait(t *testing.T, database *postgres.Database, event string) {
	t.Helper()
	processtest.WaitUntil(t, "a backend waits for "+event, func() bool { return countWaits(t, database, event) > 0 })
}

// countWaits counts the backends that have the wait event.
func countWaits(t *testing.T, database *postgres.Database, event string) int {
	t.Helper()
	var count int
	err := database.Reader().WithContext(t.Context()).
		Raw("SELECT count(*) FROM pg_stat_activity WHERE wait_event = ?", event).Scan(&count).Error
	if err != nil {
		t.Fatal(err)
	}
	return count
}
