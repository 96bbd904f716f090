//go:build slow

package postgres_test

import (
	"errors"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestKeyRemovedWhileBatchWaits reseals while a batch that will seal with the older key waits for another transaction,
// which is rolled back afterwards. In either order, nothing is stored that is sealed with a removed key.
func TestKeyRemovedWhileBatchWaits(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	for name, block := range map[string]string{
		"at its beginning": "LOCK TABLE providers IN SHARE MODE",
		"at a client_id": `INSERT INTO providers SELECT (jsonb_populate_record(p, jsonb_build_object('pk', 1000000, 'uid',
			gen_random_uuid(), 'client_id', 'waits', 'idempotency_key', NULL))).* FROM providers AS p LIMIT 1`,
		"at its commit": "SELECT pg_advisory_xact_lock(1)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for !removeWhileBlocked(t, cluster, block) {
				t.Log("the batch or the operator waited too long; trying again")
			}
		})
	}
}

// removeWhileBlocked rotates and reseals while a statement in a transaction blocks a create of the client_id waits. It
// reports whether the create was stored and the reseal ended, with the key removed or in use.
func removeWhileBlocked(t *testing.T, cluster *postgrestest.Cluster, block string) bool {
	t.Helper()
	url, keyset := cluster.CreateDatabase(t), newKeyset(t)
	opened, operator, watching := openStore(t, url, keyset), openOperator(t, url, keyset), create(t, url)
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON providers DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.client_id = 'waits') EXECUTE FUNCTION wait()`)
	createEach(t, opened, "before")
	end := begin(t, url, block)
	created, resealed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := keyedCreate(t.Context(), opened, "waits"); created <- err }()
	processtest.WaitUntil(t, "the batch waits", func() bool { return isBlocked(t, watching, "%") })
	rotate(t, operator)
	go func() { _, err := operator.Reseal(t.Context(), silent); resealed <- err }()
	processtest.WaitUntil(t, "the reseal ends or waits", func() bool {
		return len(resealed) > 0 || isBlocked(t, watching, "%LOCK TABLE keyset%") || isBlocked(t, watching, "UPDATE%")
	})
	end()
	createErr, resealErr := <-created, <-resealed
	t.Logf("created: %v, resealed: %v", createErr, resealErr)
	readSecrets(t, openOperator(t, url, keyset))
	if _, err := operator.Reseal(t.Context(), silent); err != nil {
		t.Error(err)
	}
	readSecrets(t, openOperator(t, url, keyset))
	if uses := keyUses(t, operator); len(uses) != 1 {
		t.Errorf("secrets by key are %v, want one key", uses)
	}
	return t.Failed() || createErr == nil && (resealErr == nil || errors.Is(resealErr, store.ErrKeysetInUse))
}

// isBlocked reports whether a statement like the pattern waits for another transaction.
func isBlocked(t *testing.T, database *postgres.Database, pattern string) (isBlocked bool) {
	t.Helper()
	err := database.Reader().WithContext(t.Context()).Raw(`SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE ?)`, pattern).Scan(&isBlocked).Error
	if err != nil {
		t.Fatal(err)
	}
	return isBlocked
}
