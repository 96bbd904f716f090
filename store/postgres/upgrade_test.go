//go:build slow

package postgres_test

import (
	"os"
	"strings"
	"testing"

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
