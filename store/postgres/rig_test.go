package postgres_test

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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
	processtest.Must(t, err)
	return parsed
}

// create opens the database of a URL and closes it with the test.
func create(t *testing.T, url string) *postgres.Database {
	t.Helper()
	opened, err := postgres.Create(t.Context(), parse(t, url), slog.New(slog.DiscardHandler))
	return processtest.Closing(t, opened, err)
}

// newMigrated returns the URL of a new, migrated database that nothing else uses.
func newMigrated(t *testing.T, cluster *postgrestest.Cluster) string {
	t.Helper()
	address := cluster.CreateDatabase(t)
	processtest.Must(t, createAlone(t, address))
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
	return processtest.Closing(t, opened, err)
}

// with adds parameters to a URL.
func with(url string, parameters ...string) string {
	return url + "&" + strings.Join(parameters, "&")
}

// createWithKeyset also creates a keyset, which insert needs.
func createWithKeyset(t *testing.T, cluster *postgrestest.Cluster, url string) *postgres.Database {
	t.Helper()
	opened := create(t, url)
	cluster.Exec(t, databaseOf(t, url), "INSERT INTO keyset VALUES (1, 'version', '', '', '') ON CONFLICT DO NOTHING")
	return opened
}

// insert inserts providers with names, which are also their idempotency keys.
func insert(ctx context.Context, opened *postgres.Database, names ...string) error {
	columns := strings.Fields(`uid name idempotency_key kind created_at created_by request_id remote_address secret generated
		property_mappings property_mappings_group delegated_subject scopes exclude_users_service_account user_delete_action
		group_delete_action default_group_email_domain`)
	rows := database.Insertion{Table: "providers", Columns: columns, KeysetVersion: []byte("version")}
	for _, name := range names {
		rows.Rows = append(rows.Rows, []any{
			uuid.New(), name, name, "workspace_directory", time.Now().UTC(), "", "", "", []byte("secret"), int64(0),
			"[]", "[]", "", "", false, "delete", "delete", "",
		})
	}
	_, err := opened.Insert(ctx, rows)
	return err
}

// names returns the names of the stored providers.
func names(t *testing.T, database *postgres.Database) (names []string) {
	t.Helper()
	err := database.Reader().WithContext(t.Context()).Raw("SELECT name FROM providers ORDER BY pk").Scan(&names).Error
	processtest.Must(t, err)
	return names
}

// databaseOf returns the name of the database of a URL.
func databaseOf(t *testing.T, text string) string {
	t.Helper()
	parsed, err := url.Parse(text)
	processtest.Must(t, err)
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
	processtest.Must(t, err)
	return count
}
