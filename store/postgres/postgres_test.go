package postgres_test

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/link"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// newKeyset returns the path of a keyset file, which openStore creates.
func newKeyset(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "keyset.json")
}

// newDatabase returns a cluster and the URL of a database in it.
func newDatabase(t *testing.T) (*postgrestest.Cluster, string) {
	t.Helper()
	cluster := postgrestest.NewCluster(t)
	return cluster, cluster.CreateDatabase(t)
}

// parse parses a valid URL.
func parse(t *testing.T, url string) link.URL {
	t.Helper()
	return processtest.Try(link.ParseURL(url)).Must(t)
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
	return closed(postgres.CreateAlone(t.Context(), parse(t, url), slog.New(slog.DiscardHandler)))
}

// openError opens the database of a URL and closes it.
func openError(t *testing.T, url string) error {
	t.Helper()
	return closed(postgres.Create(t.Context(), parse(t, url), slog.New(slog.DiscardHandler)))
}

func closed(opened *postgres.Database, err error) error {
	if err != nil {
		return err
	}
	return opened.Close()
}

// inspect opens the database of a URL as it is, and closes it with the test.
func inspect(t *testing.T, url string) *postgres.View {
	t.Helper()
	view, err := postgres.OpenReadOnly(t.Context(), parse(t, url))
	return processtest.Closing(t, view, err)
}

// query returns what a query selects.
func query[T any](t *testing.T, opened interface{ Reader() *gorm.DB }, text string, arguments ...any) (selected T) {
	t.Helper()
	processtest.Must(t, opened.Reader().WithContext(t.Context()).Raw(text, arguments...).Scan(&selected).Error)
	return selected
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
	cluster.Exec(t, databaseOf(t, url), "INSERT INTO keyset VALUES (1, 'version', '', '', '') ON CONFLICT DO NOTHING",
		"INSERT INTO events VALUES (DEFAULT, now(), 'key created', 1, '', '', '', '', '', '', '')")
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

// databaseOf returns the name of the database of a URL.
func databaseOf(t *testing.T, text string) string {
	t.Helper()
	parsed := processtest.Try(url.Parse(text)).Must(t)
	return strings.TrimPrefix(parsed.Path, "/")
}

func awaitReady(t *testing.T, opened *store.Store) {
	t.Helper()
	processtest.WaitUntil(t, "the store is ready", func() bool { return opened.Ready(t.Context()) == nil })
}

// awaitWait waits until a backend of a cluster has the wait event.
func awaitWait(t *testing.T, cluster *postgrestest.Cluster, event string) {
	t.Helper()
	cluster.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = $1)", event)
}

func TestStore(t *testing.T) {
	t.Parallel()
	runSuite(t, postgrestest.NewCluster(t), func(url string) string { return url })
}

// runSuite runs the suite over databases of a cluster, which a store opens at other URLs than their own.
func runSuite(t *testing.T, cluster *postgrestest.Cluster, urlOf func(url string) string) {
	t.Helper()
	migrated := databaseOf(t, newMigrated(t, cluster))
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		t.Helper()
		url, keyset := urlOf(cluster.CopyDatabase(t, migrated)), newKeyset(t)
		return func(t *testing.T) *store.Store {
			t.Helper()
			return openStore(t, url, keyset)
		}
	})
}

// TestMain runs more tests in parallel than there are processors, unless -parallel is set, because they mostly wait for
// servers.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "5"); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
