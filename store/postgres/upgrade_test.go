//go:build slow

package postgres_test

import (
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// Statements that a replica has prepared survive a later release that adds columns.
func TestColumnsAddedUnderReplica(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	for _, table := range []string{"", "providers", "tokens"} {
		if table != "" {
			cluster.Exec(t, databaseOf(t, url), "ALTER TABLE "+table+" ADD COLUMN later integer")
		}
		if replayed, err := keyedCreate(t.Context(), opened, "a"); err != nil || replayed != (table != "") {
			t.Errorf("%s: replayed is %v, %v", table, replayed, err)
		}
		if replayed, err := keyedCreate(t.Context(), opened, "a"); err != nil || !replayed {
			t.Errorf("%s: replayed is %v, %v", table, replayed, err)
		}
		for _, err := range opened.Tokens(t.Context()) {
			if err != nil {
				t.Errorf("%s: %v", table, err)
			}
		}
	}
}
