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
	// ofTheStore selects the tests that store and find records.
	ofTheStore = "^Test(Contract|Fields|Verdict|Record|Credentials|ClientIDTaken|PublicClient|Retry|Replay|Reused|Key|Bod|" +
		"LargeList|Caller|Token|RateLimit)"
	// ofSQLite selects those that access the database directly, which store/postgres tests in its own way, or that are
	// about the tests.
	ofSQLite = "^(TestRetryOfWhatIsDamaged|TestContractTestsFindFaults)$"
)

// TestOverPostgreSQL runs tests of this package over PostgreSQL.
func TestOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", ofTheStore, "-test.skip", ofSQLite)
	command.Env = append(os.Environ(), clusterVariable+"="+cluster.URL("postgres"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
