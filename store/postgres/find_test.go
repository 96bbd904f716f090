//go:build slow

package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest/processtest"
)

// validate validates a create without a key, whose client_id is a key.
func validate(ctx context.Context, opened *store.Store, key string) error {
	request, settings := keyedRequest(key)
	request.IdempotencyKey, request.ValidateOnly = nil, true
	_, _, err := opened.Providers.CreateOAuth2(ctx, request, settings)
	return err
}

// Without the standby, nothing is acknowledged: no create, no replay of one that is only on the primary, and no
// validation. Once the standby is back, unknown outcomes are settled.
func TestNothingIsAcknowledgedWithoutTheStandby(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, "")
	keyset := newKeyset(t)
	opened := openStore(t, r.url, keyset)
	createEach(t, opened, "before")
	hanging := database.Unique{CreatedBy: "caller", Kind: string(records.KindOAuth2), IdempotencyKey: "hanging"}
	searching := create(t, r.url)
	create := func(key string) func(*store.Store) error {
		return func(replica *store.Store) error { _, err := keyedCreate(t.Context(), replica, key); return err }
	}
	tries := map[string]func(*store.Store) error{
		"replay": create("before"), "what hangs": create("hanging"), "new create": create("after"),
		"validation":     func(replica *store.Store) error { _, err := keyedValidate(t.Context(), replica, "hanging"); return err },
		"client_id":      func(replica *store.Store) error { return validate(t.Context(), replica, "hanging") },
		"free client_id": func(replica *store.Store) error { return validate(t.Context(), replica, "free") },
		"readiness":      func(replica *store.Store) error { return replica.Ready(t.Context()) },
		"search":         func(*store.Store) error { _, err := searching.Find(t.Context(), hanging); return err },
	}
	// Each attempt has its own replica, so that none waits for another. The replica without a response stores nothing
	// new.
	replicas := map[string]*store.Store{"new create": opened}
	for what := range tries {
		if replicas[what] == nil {
			replicas[what] = openStore(t, r.url, keyset)
		}
	}
	r.standby.Freeze()
	processtest.IsError(t, create("hanging")(opened), store.ErrOutcomeUnknown)
	// Canceling the wait, as an operator would, leaves the record on the primary only.
	r.primary.Exec(t, databaseOf(t, r.url),
		"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	processtest.WaitUntil(t, "the record is visible", func() bool {
		return query[bool](t, searching, "SELECT EXISTS (SELECT FROM providers WHERE idempotency_key = 'hanging')")
	})
	var group sync.WaitGroup
	for what, try := range tries {
		group.Go(func() {
			if err := try(replicas[what]); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("%s: error is %v, want ErrUnavailable", what, err)
			}
		})
	}
	group.Wait()
	r.standby.Thaw()
	awaitReady(t, opened)
	for key, want := range map[string]bool{"before": true, "hanging": true, "after": false} {
		expectMade(t, opened, key, want)
		if err := validate(t.Context(), opened, key); errors.Is(err, store.ErrClientIDTaken) != want || err != nil && !want {
			t.Errorf("%s: validation without a key: %v, want that the client_id is taken: %v", key, err, want)
		}
		expectReplay(t, opened, key, want)
	}
}

// If the server does not respond, a create with a key is not sent to it, so that it is known not to be stored.
func TestCreateOnFrozenServer(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	createEach(t, opened, "before")
	cluster.Freeze()
	for _, key := range []string{"before", "new"} {
		_, err := keyedCreate(t.Context(), opened, key)
		processtest.Expect(t, errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOutcomeUnknown),
			"%s: error is %v, want ErrUnavailable", key, err)
	}
	cluster.Thaw()
	awaitReady(t, opened)
	for key, want := range map[string]bool{"before": true, "new": false} {
		expectReplay(t, opened, key, want)
	}
}

// A hint whose caller has given up says nothing about the server.
func TestCanceledHint(t *testing.T) {
	t.Parallel()
	_, url := newDatabase(t)
	opened := create(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	processtest.Expect(t, !opened.SeesKey(ctx, "caller", string(records.KindOAuth2), "key") && !opened.MustProve(),
		"the key is seen, or the server must prove that it commits")
}

// If the check of a slow read fails only after the read has ended, its connection stays, which serves others by then.
func TestSlowReadKeepsItsConnection(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := create(t, url)
	end := begin(t, url, "LOCK TABLE providers")
	used := query[int](t, opened, "SELECT pg_backend_pid() FROM pg_sleep(1.2)")
	// This waits for the check of the read, which waits for the table.
	if err := opened.Check(t.Context()); !errors.Is(err, database.ErrUnavailable) {
		t.Fatalf("the check returns %v, want ErrUnavailable", err)
	}
	end()
	// These use all connections of the pool.
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() { query[int](t, opened, "SELECT 1 FROM pg_sleep(0.1)") })
	}
	group.Wait()
	cluster.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", used)
}
