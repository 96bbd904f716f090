//go:build slow

package postgres_test

import (
	"errors"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
)

// While the server refuses rows, validations are refused and the store is not ready, but replays succeed. Once rows can
// be stored, the store recovers without a create.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	if _, err := keyedCreate(t.Context(), opened, "before"); err != nil {
		t.Fatal(err)
	}
	// The error of a server that can write its WAL but cannot extend its tables.
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`,
		`CREATE TRIGGER refuses BEFORE INSERT ON providers FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if _, err := keyedCreate(t.Context(), opened, "new"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: error is %v, want ErrUnavailable", err)
	}
	for range 2 {
		if replayed, err := keyedCreate(t.Context(), opened, "before"); err != nil || !replayed {
			t.Errorf("replayed is %v, %v", replayed, err)
		}
		if isMade, err := keyedValidate(t.Context(), opened, "before"); err != nil || !isMade {
			t.Errorf("validated as made %v, %v", isMade, err)
		}
		if _, err := keyedValidate(t.Context(), opened, "new"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("validation: error is %v, want ErrUnavailable", err)
		}
		if err := opened.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Ready: error is %v, want ErrUnavailable", err)
		}
	}
	cluster.Exec(t, databaseOf(t, url), "DROP TRIGGER refuses ON providers")
	awaitReady(t, opened)
	if isMade, err := keyedValidate(t.Context(), opened, "new"); err != nil || isMade {
		t.Errorf("validated as made %v, %v", isMade, err)
	}
	if replayed, err := keyedCreate(t.Context(), opened, "new"); err != nil || replayed {
		t.Errorf("replayed is %v, %v", replayed, err)
	}
}
