package server_test

import (
	"os"
	"os/exec"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// clusterVariable names a PostgreSQL server, over which the tests then run instead of SQLite.
const clusterVariable = "PROVIDERD_TEST_CLUSTER"

// ofSQLite are the tests that reach into the database, which store/postgres tests in its own way, and this one.
const ofSQLite = "^(TestOverPostgreSQL|TestStorageUnavailable|TestFaultOfTheServer|TestCreateBeyondTheLastPK|" +
	"TestRetryOfWhatIsDamaged|TestDamagedToken|TestMetricsOfTheStore|" +
	"TestStorageThatIsTooSlow)$"

// TestOverPostgreSQL runs all other tests of this package over a PostgreSQL database.
func TestOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.skip", ofSQLite)
	command.Env = append(os.Environ(), clusterVariable+"="+cluster.URL("postgres"))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
