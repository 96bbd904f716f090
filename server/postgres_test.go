package server_test

import (
	"os"
	"os/exec"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// clusterVariable names a PostgreSQL server, over which the tests then run instead of SQLite.
const clusterVariable = "PROVIDERD_TEST_CLUSTER"

const (
	// ofTheStore are the tests of what is stored and found again.
	ofTheStore = "^Test(Contract|Fields|Verdict|Record|Credentials|ClientIDTaken|PublicClient|Retry|Replay|Reused|Key|Bod|" +
		"LargeList|Caller|Token|RateLimit)"
	// ofSQLite are those of them that reach into the database, which store/postgres tests in its own way, or test tests.
	ofSQLite = "^(TestRetryOfWhatIsDamaged|TestContractTestsFindFaults)$"
)

// TestOverPostgreSQL runs tests of this package over a PostgreSQL database.
func TestOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", ofTheStore, "-test.skip", ofSQLite)
	command.Env = append(os.Environ(), clusterVariable+"="+cluster.URL("postgres"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
