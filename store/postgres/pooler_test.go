//go:build slow

package postgres_test

import (
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
)

// TestStoreBehindAPooler runs the suite with a pooler, which may give each transaction another connection.
func TestStoreBehindAPooler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	cluster := postgrestest.NewCluster(t)
	pooler := postgrestest.NewPgBouncer(t, cluster)
	migrated := databaseOf(t, newMigrated(t, cluster))
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		t.Helper()
		name, keyset := cluster.CopyDatabase(t, migrated), newKeyset(t)
		url := with(pooler.URL(databaseOf(t, name)), "default_query_exec_mode=exec")
		return func(t *testing.T) *store.Store {
			t.Helper()
			return openStore(t, url, keyset)
		}
	})
}
