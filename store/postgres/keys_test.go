//go:build slow

package postgres_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// openOperator opens a store as commands do.
func openOperator(t *testing.T, url, keyset string) *store.Store {
	t.Helper()
	database := processtest.Try(postgres.Open(t.Context(), parse(t, url), slog.New(slog.DiscardHandler))).Must(t)
	opened, err := store.Open(t.Context(), database, keyset)
	return processtest.Closing(t, opened, err)
}

func rotate(t *testing.T, operator *store.Store) uint32 {
	t.Helper()
	return processtest.Try(operator.Keys.Rotate(t.Context())).Must(t)
}

func silent(int64, int64) {}

// keyUses returns the number of secrets that each data key has sealed.
func keyUses(t *testing.T, opened *store.Store) map[uint32]int64 {
	t.Helper()
	keys := processtest.Try(opened.Keys.List(t.Context())).Must(t)
	uses := map[uint32]int64{}
	for _, key := range keys {
		if key.Secrets != nil {
			uses[key.ID] = *key.Secrets
		}
	}
	return uses
}

// expectReplay creates a provider with a key, which must be a replay or not.
func expectReplay(t *testing.T, opened *store.Store, key string, want bool) {
	t.Helper()
	if replayed, err := keyedCreate(t.Context(), opened, key); err != nil || replayed != want {
		t.Errorf("%s: replayed is %v, want %v, %v", key, replayed, want, err)
	}
}

// expectMade validates a create with a key, which must have been made before or not.
func expectMade(t *testing.T, opened *store.Store, key string, want bool) {
	t.Helper()
	if isMade, err := keyedValidate(t.Context(), opened, key); err != nil || isMade != want {
		t.Errorf("%s: validated as made %v, want %v, %v", key, isMade, want, err)
	}
}

// createEach creates a provider with each of the keys.
func createEach(t *testing.T, opened *store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		expectReplay(t, opened, key, false)
	}
}

// readSecrets returns the names of all providers. It fails the test if a secret cannot be decrypted or is another one's.
func readSecrets(t *testing.T, opened *store.Store) (names []string) {
	t.Helper()
	for _, record := range storetest.Collect(t, opened.Providers.Opened(t.Context(), opened.Providers.List(t.Context(), store.Filter{}, 0))) {
		provider := record.(records.OAuth2Provider)
		if secret := provider.ClientSecret.Reveal(); secret != "secret of "+provider.Name {
			t.Errorf("the secret of %s is %q", provider.Name, secret)
		}
		names = append(names, provider.Name)
	}
	return names
}

func expectSecrets(t *testing.T, opened *store.Store, want ...string) {
	t.Helper()
	processtest.Equal(t, readSecrets(t, opened), want, "providers")
}

// While another program reads the table of keys, as pg_dump does, a reseal gives up, and creates wait for it at most
// until then.
func TestResealDuringDump(t *testing.T) {
	t.Parallel()
	url, path := postgrestest.NewCluster(t).CreateDatabase(t), newKeyset(t)
	replica, operator, watching := openStore(t, url, path), openOperator(t, url, path), create(t, url)
	createEach(t, replica, "before")
	rotate(t, operator)
	endDump := begin(t, url, "LOCK TABLE keyset IN ACCESS SHARE MODE")
	begun, resealed := time.Now(), make(chan error, 1)
	go func() {
		_, err := operator.Keys.Reseal(t.Context(), silent)
		resealed <- err
	}()
	processtest.WaitUntil(t, "the reseal waits", func() bool { return isBlocked(t, watching, "%LOCK TABLE keyset%") })
	createEach(t, replica, "meanwhile")
	processtest.IsError(t, <-resealed, keyset.ErrInUse)
	if took := time.Since(begun).Round(time.Millisecond); took < 500*time.Millisecond || took > 3*time.Second {
		t.Errorf("the reseal gave up after %v, want about half a second", took)
	}
	endDump()
	if removed, err := operator.Keys.Reseal(t.Context(), silent); err != nil || removed != 1 {
		t.Errorf("%d keys are removed, want 1, %v", removed, err)
	}
	expectSecrets(t, replica, "before", "meanwhile")
}

// either returns the URL of both servers.
func (r *replicated) either() string {
	return strings.Replace(r.url, r.primary.Address(), r.primary.Address()+","+r.standby.Address(), 1)
}

// stopReplication makes the primary commit what the standby will not have.
func (r *replicated) stopReplication(t *testing.T) {
	t.Helper()
	r.primary.Set(t, "synchronous_standby_names", "")
	r.standby.Stop(t)
}

// failOver replaces the primary with the standby.
func (r *replicated) failOver(t *testing.T) {
	t.Helper()
	r.primary.Kill()
	r.standby.Start(t)
	r.standby.Promote(t)
}

// A failover takes a rotation back, and another rotation follows. Every secret that is still there opens, and each
// replica seals with the key that the database has, regardless of the key in its memory.
func TestLostRotation(t *testing.T) {
	t.Parallel()
	r, keyset := newReplicated(t, ""), newKeyset(t)
	first, second := openStore(t, r.either(), keyset), openStore(t, r.either(), keyset)
	operator := openOperator(t, r.either(), keyset)
	createEach(t, first, "kept")
	r.stopReplication(t)
	lost := rotate(t, operator)
	createEach(t, first, "lost")
	createEach(t, second, "lost too")
	r.failOver(t)
	createEach(t, first, "lost")
	expectSecrets(t, second, "kept", "lost")
	next := rotate(t, operator)
	createEach(t, second, "next")
	createEach(t, first, "last")
	for _, opened := range []*store.Store{first, second, operator, openOperator(t, r.either(), keyset)} {
		expectSecrets(t, opened, "kept", "lost", "next", "last")
	}
	if uses := keyUses(t, operator); len(uses) != 2 || uses[lost] != 0 || uses[next] != 2 {
		t.Errorf("secrets by key are %v, want 2 for the first and for %d", uses, next)
	}
}

// A failover takes resealed secrets back. The keys that they have again are not removed.
func TestLostReseal(t *testing.T) {
	t.Parallel()
	r, keyset := newReplicated(t, ""), newKeyset(t)
	opened, operator := openStore(t, r.either(), keyset), openOperator(t, r.either(), keyset)
	createEach(t, opened, "a", "b")
	rotate(t, operator)
	r.stopReplication(t)
	hasFailed := false
	removed, err := operator.Keys.Reseal(t.Context(), func(done, _ int64) {
		if done > 0 && !hasFailed {
			hasFailed = true
			r.failOver(t)
		}
	})
	processtest.Expect(t, err == nil && removed == 1 && hasFailed,
		"%d keys are removed, want 1, %v; failed over: %v", removed, err, hasFailed)
	expectSecrets(t, openOperator(t, r.either(), keyset), "a", "b")
}

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
	url, path := cluster.CreateDatabase(t), newKeyset(t)
	opened, operator, watching := openStore(t, url, path), openOperator(t, url, path), create(t, url)
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
	go func() { _, err := operator.Keys.Reseal(t.Context(), silent); resealed <- err }()
	processtest.WaitUntil(t, "the reseal ends or waits", func() bool {
		return len(resealed) > 0 || isBlocked(t, watching, "%LOCK TABLE keyset%") || isBlocked(t, watching, "UPDATE%")
	})
	end()
	createErr, resealErr := <-created, <-resealed
	t.Logf("created: %v, resealed: %v", createErr, resealErr)
	readSecrets(t, openOperator(t, url, path))
	if _, err := operator.Keys.Reseal(t.Context(), silent); err != nil {
		t.Error(err)
	}
	readSecrets(t, openOperator(t, url, path))
	processtest.Equal(t, len(keyUses(t, operator)), 1, "keys")
	return t.Failed() || createErr == nil && (resealErr == nil || errors.Is(resealErr, keyset.ErrInUse))
}

// isBlocked reports whether a statement like the pattern waits for another transaction.
func isBlocked(t *testing.T, database *postgres.Database, pattern string) bool {
	t.Helper()
	return query[bool](t, database, `SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE ?)`, pattern)
}
