//go:build slow

package postgres_test

import (
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// TestStoreBehindAPooler runs the suite with a pooler, which may give each transaction another connection.
func TestStoreBehindAPooler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	cluster := postgrestest.NewCluster(t)
	pooler := postgrestest.NewPgBouncer(t, cluster)
	runSuite(t, cluster, func(url string) string {
		return with(pooler.URL(databaseOf(t, url)), "default_query_exec_mode=exec")
	})
}
