package server_test

import (
	"os"
	"os/exec"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// clusterVariable names a PostgreSQL server; tests then use it instead of SQLite.
const clusterVariable = "PROVIDERD_TEST_CLUSTER"

const (
	// ofTheStore selects tests that depend on what the database stores, finds and refuses.
	ofTheStore = "^Test(Contract$|Fields$|ValidationPredicts|Credentials|OneRequestHas|Retry|ReusedKey|KeyIs|KeyBelongs|" +
		"LargeList|TokenMust)"
	// ofSQLite selects one that accesses the database directly, which store/postgres tests in its own way.
	ofSQLite = "^TestRetryOfWhatIsDamaged$"
)

// TestOverPostgreSQL runs tests of this package over PostgreSQL.
func TestOverPostgreSQL(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	cluster := postgrestest.NewCluster(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", ofTheStore, "-test.skip", ofSQLite)
	command.Env = append(os.Environ(), clusterVariable+"="+cluster.URL("postgres"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
