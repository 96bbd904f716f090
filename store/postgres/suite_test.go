package postgres_test

import (
	"flag"
	"log"
	"os"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
)

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
