package postgres_test

import (
	"log/slog"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	newDatabase := migratedDatabases(t, postgrestest.NewCluster(t))
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		t.Helper()
		url, keyset := newDatabase(t), newKeyset(t)
		return func(t *testing.T) *store.Store {
			t.Helper()
			return openStore(t, url, keyset)
		}
	})
}

// migratedDatabases returns a function that copies a migrated database, and returns the URL of the copy.
func migratedDatabases(t *testing.T, cluster *postgrestest.Cluster) func(t *testing.T) string {
	t.Helper()
	template := cluster.CreateDatabase(t)
	migrated, err := postgres.Create(t.Context(), parse(t, template), slog.New(slog.DiscardHandler))
	if err == nil {
		err = migrated.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) string {
		t.Helper()
		return cluster.CopyDatabase(t, databaseOf(t, template))
	}
}
