//go:build slow

package postgres_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
)

// Replicas of the previous release keep working after the first one of this release has migrated the schema.
func TestStatementsOfPreviousVersion(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	create(t, url)
	text, err := os.ReadFile("testdata/level_1.sql")
	if err != nil {
		t.Fatal(err)
	}
	statements := strings.Split(strings.TrimSuffix(string(text), ";\n"), ";\n")
	cluster.Exec(t, databaseOf(t, url), statements...)
}

// Statements that a replica of the previous release has prepared survive the migrations: they select all columns of the
// tables that it knows.
func TestPreparedStatementsOfPreviousVersion(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewCluster(t).CreateDatabase(t)
	if _, err := postgres.Migrate(t.Context(), parse(t, url), slog.New(slog.DiscardHandler), 1); err != nil {
		t.Fatal(err)
	}
	replica, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = replica.Close(context.WithoutCancel(t.Context())) })
	rows, _ := replica.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	read := func() {
		for _, table := range tables {
			if _, err := replica.Exec(t.Context(), "SELECT * FROM "+table+" WHERE $1", true); err != nil {
				t.Errorf("%s: %v", table, err)
			}
		}
	}
	read()
	create(t, url)
	read()
}

// Statements that a replica has prepared survive a later release that adds columns.
func TestColumnsAddedUnderReplica(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	for _, table := range []string{"", "providers", "oauth2_providers", "tokens"} {
		if table != "" {
			cluster.Exec(t, databaseOf(t, url), "ALTER TABLE "+table+" ADD COLUMN later integer")
		}
		if replayed, err := keyedCreate(t.Context(), opened, "a"); err != nil || replayed != (table != "") {
			t.Errorf("%s: replayed is %v, %v", table, replayed, err)
		}
		if replayed, err := keyedCreate(t.Context(), opened, "a"); err != nil || !replayed {
			t.Errorf("%s: replayed is %v, %v", table, replayed, err)
		}
		for _, err := range opened.Tokens(t.Context()) {
			if err != nil {
				t.Errorf("%s: %v", table, err)
			}
		}
	}
}
