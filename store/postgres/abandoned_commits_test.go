//go:build slow

package postgres_test

import (
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// Commits without a response release their connections in time, even if there are more of them than connections. The
// server is not asked to cancel them, and continues with each that it does not terminate itself.
func TestHangingCommitsReleaseConnections(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened, watching := createWithKeyset(t, cluster, url), create(t, url)
	opened.SetAbandonTimeout(time.Second)
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER hangs AFTER INSERT ON providers DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.name LIKE 'hangs%') EXECUTE FUNCTION hang()`,
		`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER dies AFTER INSERT ON providers DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.name LIKE 'dies%') EXECUTE FUNCTION die()`)
	insertNamed := func(prefix string) error {
		err := insert(t.Context(), opened, prefix+rand.Text())
		return err
	}
	const terminated, rounds, each = 20, 2, 12
	for range terminated {
		if err := insertNamed("dies"); !errors.Is(err, database.ErrOutcomeUnknown) {
			t.Fatalf("error is %v, want ErrOutcomeUnknown", err)
		}
	}
	if err := insertNamed("lives"); err != nil {
		t.Error(err)
	}
	for range rounds {
		var group sync.WaitGroup
		for range each {
			group.Go(func() {
				if err := insertNamed("hangs"); !errors.Is(err, database.ErrOutcomeUnknown) {
					t.Errorf("error is %v, want ErrOutcomeUnknown", err)
				}
			})
		}
		group.Wait()
		processtest.WaitUntil(t, "a create is stored", func() bool { return insertNamed("lives") == nil })
	}
	if hanging := countWaits(t, watching, "PgSleep"); hanging != rounds*each {
		t.Errorf("the server continues with %d commits, want %d", hanging, rounds*each)
	}
}
