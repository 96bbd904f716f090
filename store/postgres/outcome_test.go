//go:build slow

package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// replicated is a primary with a synchronous standby.
type replicated struct {
	primary, standby *postgrestest.Cluster
	url              string
}

// newReplicated starts servers with messages in a locale; "" for English.
func newReplicated(t *testing.T, locale string) *replicated {
	t.Helper()
	primary := postgrestest.NewClusterIn(t, locale)
	r := &replicated{primary: primary, url: primary.CreateDatabase(t)}
	r.standby = primary.AddStandby(t)
	primary.RequireStandby(t, r.standby)
	return r
}

func keyedCreate(ctx context.Context, opened *store.Store, key string) (replayed bool, err error) {
	request, settings := keyedRequest(key)
	_, replayed, err = opened.Providers.CreateOAuth2(ctx, request, settings)
	return replayed, err
}

// keyedValidate is keyedCreate that only validates.
func keyedValidate(ctx context.Context, opened *store.Store, key string) (isMade bool, err error) {
	request, settings := keyedRequest(key)
	request.ValidateOnly = true
	_, isMade, err = opened.Providers.CreateOAuth2(ctx, request, settings)
	return isMade, err
}

func keyedRequest(key string) (store.CreateRequest, records.OAuth2Settings) {
	settings := storetest.FullOAuth2(key)
	settings.ClientSecret = seal.NewSecret("secret of " + key)
	return store.CreateRequest{Name: key, CreatedBy: "caller", RequestID: uuid.NewString(), IdempotencyKey: &key}, settings
}

// If the role waits until standbys show what it commits, creates and probes wait for that too.
func TestStrongerCommitIsKept(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, "")
	opened := openStore(t, with(r.url, "synchronous_commit=remote_apply"), newKeyset(t))
	createEach(t, opened, "before")
	r.standby.Exec(t, "postgres", "SELECT pg_wal_replay_pause()")
	r.standby.Await(t, "SELECT pg_get_wal_replay_pause_state() = 'paused'")
	if _, err := keyedCreate(t.Context(), opened, "paused"); !errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("error is %v, want ErrOutcomeUnknown", err)
	}
	processtest.IsError(t, opened.Ready(t.Context()), store.ErrUnavailable)
	r.standby.Exec(t, "postgres", "SELECT pg_wal_replay_resume()")
	awaitReady(t, opened)
	expectReplay(t, opened, "paused", true)
}

// TestCanceledWaitForStandby cancels every wait for the standby, of creates, their lookups and their retries. A canceled
// commit returns only a warning, in any language and for any client_min_messages. Nothing is acknowledged until the
// standby has it, and a retry ends in the one record. German stands for all languages: code that reads the message would
// look for English.
func TestCanceledWaitForStandby(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, postgrestest.German)
	keyset := newKeyset(t)
	cancels := []struct{ how, minMessages string }{
		{"pg_cancel_backend", "notice"},
		{"pg_cancel_backend", "error"},
		{"pg_terminate_backend", "notice"},
		{"pg_terminate_backend", "error"},
	}
	replicas := make([]*store.Store, len(cancels))
	for i, cancel := range cancels {
		url := with(r.url, "application_name="+cancel.how, "client_min_messages="+cancel.minMessages)
		replicas[i] = openStore(t, url, keyset)
	}
	r.standby.Freeze()
	ended := make(chan struct{}, len(cancels))
	for i, opened := range replicas {
		go func() {
			for range 2 {
				_, err := keyedCreate(t.Context(), opened, fmt.Sprint(i))
				if !errors.Is(err, store.ErrOutcomeUnknown) && !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%v: error is %v, want ErrOutcomeUnknown or ErrUnavailable", cancels[i], err)
				}
			}
			ended <- struct{}{}
		}()
	}
	processtest.WaitUntil(t, "the creates end", func() bool {
		for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
			r.primary.Exec(t, "postgres",
				"SELECT "+how+"(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = '"+how+"'")
		}
		return len(ended) == len(cancels)
	})
	r.standby.Thaw()
	for i, opened := range replicas {
		awaitReady(t, opened)
		expectReplay(t, opened, fmt.Sprint(i), true)
	}
	processtest.Equal(t, len(storetest.Collect(t, replicas[0].Providers.List(t.Context(), store.Filter{}, 0))),
		len(cancels), "stored records")
}

// A constraint that fails at COMMIT, with a message in any language, has a known outcome: nothing is stored.
func TestRefusedCommitIsKnown(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewClusterIn(t, postgrestest.German)
	url := cluster.CreateDatabase(t)
	opened := createWithKeyset(t, cluster, url)
	cluster.Exec(t, databaseOf(t, url), "CREATE TABLE wanted (name text UNIQUE)", "INSERT INTO wanted VALUES ('wanted')",
		"ALTER TABLE providers ADD FOREIGN KEY (name) REFERENCES wanted (name) DEFERRABLE INITIALLY DEFERRED")
	err := insert(t.Context(), opened, "wanted", "refused")
	processtest.Expect(t, errors.Is(err, database.ErrInsertApart) && !errors.Is(err, database.ErrOutcomeUnknown),
		"error is %v, want that of the constraint", err)
	processtest.Equal(t, len(query[[]string](t, opened, "SELECT name FROM providers ORDER BY pk")), 0, "stored records")
}

// A program that stalls during a transaction does not stall others for long, even if they insert the same value. An insert
// whose trigger waits for the table of events waits for a table, not for a row.
func TestStalledTransaction(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := createWithKeyset(t, cluster, url)
	end := begin(t, url, "LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
	if err := insert(t.Context(), opened, "before", "b"); !errors.Is(err, database.ErrLocked) ||
		errors.Is(err, database.ErrInsertApart) {
		t.Errorf("locked events: error is %v, want ErrLocked", err)
	}
	end()
	processtest.Must(t, insert(t.Context(), opened, "before", "b"))
	defer begin(t, url, "UPDATE providers SET idempotency_key = 'wanted' WHERE name = 'before'")()
	processtest.CheckAs(t, insert(t.Context(), opened, "free"), "another value")
	began := time.Now()
	err := insert(t.Context(), opened, "another", "wanted")
	processtest.Expect(t, errors.Is(err, database.ErrInsertApart) && errors.Is(err, database.ErrLocked),
		"the same value: error is %v, want ErrInsertApart and ErrLocked", err)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("the same value waited for %v", took)
	}
}

// Commits without a response release their connections in time, even if there are more of them than connections. The
// server is not asked to cancel them, and continues with each that it does not terminate itself.
func TestHangingCommitsReleaseConnections(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := createWithKeyset(t, cluster, url)
	opened.SetAbandonTimeout(time.Second)
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER hangs AFTER INSERT ON providers DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.name LIKE 'hangs%') EXECUTE FUNCTION hang()`,
		`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER dies AFTER INSERT ON providers DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.name LIKE 'dies%') EXECUTE FUNCTION die()`)
	insertNamed := func(prefix string) error { return insert(t.Context(), opened, prefix+rand.Text()) }
	const terminated, rounds, each = 20, 2, 12
	for range terminated {
		if err := insertNamed("dies"); !errors.Is(err, database.ErrOutcomeUnknown) {
			t.Fatalf("error is %v, want ErrOutcomeUnknown", err)
		}
	}
	processtest.Check(t, insertNamed("lives"))
	for range rounds {
		var group sync.WaitGroup
		for range each {
			group.Go(func() {
				processtest.IsError(t, insertNamed("hangs"), database.ErrOutcomeUnknown)
			})
		}
		group.Wait()
		processtest.WaitUntil(t, "a create is stored", func() bool { return insertNamed("lives") == nil })
	}
	hanging := query[int](t, opened, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
	processtest.Equal(t, hanging, rounds*each, "commits that the server continues with")
}

// A store is ready only while creates are committed.
func TestReadinessIsWritability(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, "")
	opened := openStore(t, r.url, newKeyset(t))
	awaitReady(t, opened)
	for _, change := range []struct {
		name       string
		fail, heal func()
	}{
		{"frozen", r.primary.Freeze, r.primary.Thaw},
		{"without its standby", r.standby.Freeze, r.standby.Thaw},
		{"read-only", func() { r.primary.Set(t, "default_transaction_read_only", "on") }, func() {
			r.primary.Exec(t, "postgres", "SET default_transaction_read_only = off",
				"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
		}},
		{"restarted", r.primary.Kill, func() { r.primary.Start(t) }},
	} {
		change.fail()
		failed := time.Now()
		for opened.Ready(t.Context()) == nil {
			processtest.Require(t, time.Since(failed) <= 2*time.Second, "%s: ready after 2 seconds", change.name)
		}
		change.heal()
		awaitReady(t, opened)
		createEach(t, opened, "after "+change.name)
	}
}
