//go:build slow

package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// TestKeyRemovedWhileBatchWaits removes the key that a batch has sealed with while the batch waits for another
// transaction, which is rolled back afterwards. Whatever comes first, nothing is stored that is sealed with a removed key.
func TestKeyRemovedWhileBatchWaits(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	for name, block := range map[string]string{
		"at its beginning": "ALTER SEQUENCE providers_pk_seq CACHE 1",
		"at a client_id": `SET LOCAL session_replication_role = replica; INSERT INTO oauth2_providers SELECT
			(jsonb_populate_record(o, '{"pk": 1000000, "client_id": "waits"}')).* FROM oauth2_providers AS o LIMIT 1`,
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

// removeWhileBlocked removes a key while a statement in a transaction blocks a create of the client_id waits. It reports
// whether the create was stored and the removal ended, with the key removed or in use.
func removeWhileBlocked(t *testing.T, cluster *postgrestest.Cluster, block string) bool {
	t.Helper()
	url, keyset := cluster.CreateDatabase(t), newKeyset(t)
	opened, operator, watching := openStore(t, url, keyset), openOperator(t, url, keyset), create(t, url)
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON oauth2_providers DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.client_id = 'waits') EXECUTE FUNCTION wait()`)
	if _, err := keyedCreate(t.Context(), opened, "before"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; "+block); err != nil {
		t.Fatal(err)
	}
	created, reported, removed := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	background := func(ended chan<- error, work func() error) { go func() { ended <- work() }() }
	keyed := func(key string) func() error {
		return func() error { _, err := keyedCreate(t.Context(), opened, key); return err }
	}
	background(created, keyed("waits"))
	processtest.WaitUntil(t, "the batch waits", func() bool { return isBlocked(t, watching, "%") })
	if _, err := operator.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The replica reports the new key with its next create.
	background(reported, keyed("reports"))
	if err := operator.Reseal(t.Context(), func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	background(removed, func() error { _, err := operator.RetireKeys(t.Context()); return err })
	processtest.WaitUntil(t, "the operator has removed the key or waits", func() bool {
		return len(removed) > 0 || isBlocked(t, watching, "LOCK TABLE%")
	})
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	createErr, removeErr := <-created, <-removed
	t.Logf("created: %v, reported: %v, removed: %v", createErr, <-reported, removeErr)
	readAll(t, url, keyset)
	if err := operator.Reseal(t.Context(), func(int64, int64) {}); err != nil {
		t.Error(err)
	}
	if _, err := operator.RetireKeys(t.Context()); err != nil {
		t.Error(err)
	}
	readAll(t, url, keyset)
	return t.Failed() || createErr == nil && (removeErr == nil || errors.Is(removeErr, store.ErrKeysInUse))
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

// readAll reads all records with the keys that are left.
func readAll(t *testing.T, url, keyset string) {
	t.Helper()
	storetest.Collect(t, openOperator(t, url, keyset).Providers(t.Context(), store.Filter{}, 0))
}
