package postgres_test

import (
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	migrated := databaseOf(t, newMigrated(t, cluster))
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		t.Helper()
		url, keyset := cluster.CopyDatabase(t, migrated), newKeyset(t)
		return func(t *testing.T) *store.Store {
			t.Helper()
			return openStore(t, url, keyset)
		}
	})
}
