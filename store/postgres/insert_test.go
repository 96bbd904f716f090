//go:build slow

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// begin runs a statement in a transaction that stays open until end is called.
func begin(t *testing.T, url, statement string) (end func()) {
	t.Helper()
	conn := processtest.Try(pgx.Connect(t.Context(), url)).Must(t)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	execute := func(statement string) {
		processtest.Try(conn.Exec(t.Context(), statement)).Must(t)
	}
	execute("BEGIN")
	execute(statement)
	return func() { execute("ROLLBACK") }
}

// Creates that wait for another transaction are refused alone, and every create meets its deadline. One with less time left
// than a transaction may take is refused before it begins, and does not use up its key. The test runs apart from others,
// because the last batch may begin only 0.7 s later than it does on an idle machine.
func TestBlockedCreatesFailAlone(t *testing.T) {
	cluster, url := newDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	late, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := keyedCreate(late, opened, "before 0"); !errors.Is(err, store.ErrUnavailable) || late.Err() != nil {
		t.Errorf("error is %v, %v, want ErrUnavailable immediately", err, late.Err())
	}
	for n := range 10 {
		createEach(t, opened, fmt.Sprint("before ", n))
	}
	defer begin(t, url, "UPDATE providers SET client_id = replace(client_id, 'before', 'held')")()
	// Each commit takes at least 20 ms, as on a slow disk.
	cluster.Set(t, "commit_siblings", "0")
	cluster.Set(t, "commit_delay", "20000")
	for round := 1; createAmongHeld(t, opened, round) == 1; round++ {
		t.Log("a create was alone; trying again")
	}
}

// createAmongHeld creates client_ids, every sixth of which is held, and returns the size of the batch of one of these.
func createAmongHeld(t *testing.T, opened *store.Store, round int) int {
	var group sync.WaitGroup
	var timing store.Timing
	for i := range 60 {
		request, settings := keyedRequest(fmt.Sprint(round, "/", i))
		isHeld := i%6 == 0
		if isHeld {
			request.IdempotencyKey, settings.ClientID = nil, fmt.Sprint("held ", i/6)
		}
		if i == 30 {
			request.Timing = &timing
		}
		group.Go(func() {
			const deadline, busy = 5 * time.Second, 2 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			begun := time.Now()
			_, _, err := opened.Providers.CreateOAuth2(ctx, request, settings)
			if isHeld && !errors.Is(err, store.ErrUnavailable) || !isHeld && err != nil {
				t.Errorf("create %d: error is %v", i, err)
			}
			if took := time.Since(begun); took > deadline+busy {
				t.Errorf("create %d took %v", i, took)
			}
		})
	}
	group.Wait()
	return timing.BatchSize
}

// A create is stored if the transaction that it waits for ends soon after its batch has given up.
func TestBlockedCreatesAreTriedAgain(t *testing.T) {
	t.Parallel()
	_, url := newDatabase(t)
	opened, watching := openStore(t, url, newKeyset(t)), create(t, url)
	createEach(t, opened, "before")
	for round := 1; !isStoredAfterWait(t, url, opened, watching, round); round++ {
		t.Log("the create was alone, or the machine was busy; trying again")
	}
}

// isStoredAfterWait reports whether a create was stored after others had held its client_id until its batch gave up. It
// returns false if there was no batch, or if this took longer than a create is tried again.
func isStoredAfterWait(t *testing.T, url string, opened *store.Store, watching *postgres.Database, round int) bool {
	held := fmt.Sprint("held ", round)
	end := begin(t, url, "UPDATE providers SET client_id = '"+held+"' WHERE client_id = 'before'")
	var group sync.WaitGroup
	var timing store.Timing
	var heldErr error
	for i := range 30 {
		request, settings := keyedRequest(fmt.Sprint(round, "/", i))
		if i == 15 {
			request.IdempotencyKey, settings.ClientID, request.Timing = nil, held, &timing
		}
		group.Go(func() {
			if _, _, err := opened.Providers.CreateOAuth2(t.Context(), request, settings); i == 15 {
				heldErr = err
			} else if err != nil {
				t.Errorf("create %d: %v", i, err)
			}
		})
	}
	processtest.WaitUntil(t, "the batch waits", func() bool { return isBlocked(t, watching, "INSERT%") })
	processtest.WaitUntil(t, "the batch gives up", func() bool { return !isBlocked(t, watching, "INSERT%") })
	end()
	freed := time.Now()
	group.Wait()
	if timing.BatchSize == 1 || freed.Sub(timing.Begun) > 1300*time.Millisecond {
		return false
	}
	if heldErr != nil {
		t.Fatalf("freed %v after its batch began: %v", freed.Sub(timing.Begun), heldErr)
	}
	return true
}

// An insert has the id of a transaction before it generates a pk, so that no reader of events passes it.
func TestInsertHasAnIDBeforePKs(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := createWithKeyset(t, cluster, url)
	// The sequence needs an id for the first pk only.
	processtest.Must(t, insert(t.Context(), opened, "first"))
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$`,
		"CREATE TRIGGER wait BEFORE INSERT ON providers FOR EACH ROW EXECUTE FUNCTION wait()")
	end := begin(t, url, "SELECT pg_advisory_xact_lock(1)")
	inserted := make(chan error, 1)
	go func() { inserted <- insert(t.Context(), opened, "second") }()
	awaitWait(t, cluster, "advisory")
	if !query[bool](t, opened, "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE wait_event = 'advisory'") {
		t.Error("a transaction without an id has generated a pk")
	}
	end()
	processtest.Must(t, <-inserted)
}

// While a server is away or accepts no writes, an insert is known to have stored nothing, even on connections that were
// open before. It is stored as soon as the server is back.
func TestInsertWhileServerIsAway(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := createWithKeyset(t, cluster, url)
	for _, fault := range []struct {
		name       string
		fail, heal func()
	}{
		{"killed", cluster.Kill, func() { cluster.Start(t) }},
		{"stopped", func() { cluster.Stop(t) }, func() { cluster.Start(t) }},
		{"read-only", func() { cluster.Set(t, "default_transaction_read_only", "on") }, func() {
			cluster.Exec(t, "postgres", "SET default_transaction_read_only = off",
				"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
		}},
	} {
		processtest.CheckAs(t, insert(t.Context(), opened, "before "+fault.name), "before %s", fault.name)
		fault.fail()
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := insert(short, opened, "while "+fault.name)
		cancel()
		if !errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown) {
			t.Errorf("%s: error is %v, want ErrUnavailable", fault.name, err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- insert(t.Context(), opened, "after "+fault.name) }()
		fault.heal()
		err = <-waiting
		if errors.Is(err, database.ErrUnavailable) && !errors.Is(err, database.ErrOutcomeUnknown) {
			// On a busy machine, the server takes longer to start than an insert waits.
			err = insert(t.Context(), opened, "after "+fault.name)
		}
		processtest.CheckAs(t, err, "after %s", fault.name)
	}
	want := []string{
		"before killed", "after killed", "before stopped", "after stopped", "before read-only", "after read-only",
	}
	processtest.Equal(t, query[[]string](t, opened, "SELECT name FROM providers ORDER BY pk"), want, "stored providers")
}

// A warning at the commit of an insert makes its outcome unknown, through a pooler too.
func TestWarningAtCommit(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, "")
	pooled := postgrestest.NewPgBouncer(t, r.primary)
	for name, url := range map[string]string{"direct": r.url, "pooled": pooled(databaseOf(t, r.url))} {
		opened := createWithKeyset(t, r.primary, url)
		r.standby.Freeze()
		inserted := make(chan error, 1)
		go func() { inserted <- insert(t.Context(), opened, name) }()
		awaitWait(t, r.primary, "SyncRep")
		r.primary.Exec(t, "postgres", "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		err := <-inserted
		if !errors.Is(err, database.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "synchronous replication") {
			t.Errorf("%s: error is %v, want ErrOutcomeUnknown with the warning", name, err)
		}
		r.standby.Thaw()
	}
}

// Warnings of other statements than COMMIT change nothing, such as those that the server adds to each transaction when ids
// run out, and those of triggers.
func TestOtherWarnings(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	keyset := newKeyset(t)
	createEach(t, openStore(t, url, keyset), "before")
	cluster.UseUpTransactions(t, databaseOf(t, url))
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'added'; RETURN NEW; END $$`,
		"CREATE TRIGGER warns BEFORE INSERT ON providers FOR EACH ROW EXECUTE FUNCTION warn()")
	var warnings strings.Builder
	config := processtest.Try(pgx.ParseConfig(url)).Must(t)
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { warnings.WriteString(notice.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	processtest.Must(t, err)
	_, err = conn.Exec(t.Context(), "SELECT pg_current_xact_id()")
	processtest.Must(t, err, conn.Close(t.Context()))
	if !strings.Contains(warnings.String(), "must be vacuumed within") {
		t.Fatalf("the server warns only of %q", warnings.String())
	}
	opened := openStore(t, url, keyset)
	createEach(t, opened, "first", "second")
	expectReplay(t, opened, "before", true)
	processtest.Must(t, opened.Ready(t.Context()))
	rotate(t, opened)
}

// While the server refuses rows, validations are refused and the store is not ready, but replays succeed. Once rows can
// be stored, the store recovers without a create.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	createEach(t, opened, "before")
	// The error of a server that can write its WAL but cannot extend its tables.
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`,
		`CREATE TRIGGER refuses BEFORE INSERT ON providers FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if _, err := keyedCreate(t.Context(), opened, "new"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: error is %v, want ErrUnavailable", err)
	}
	for range 2 {
		expectReplay(t, opened, "before", true)
		expectMade(t, opened, "before", true)
		if _, err := keyedValidate(t.Context(), opened, "new"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("validation: error is %v, want ErrUnavailable", err)
		}
		processtest.IsError(t, opened.Ready(t.Context()), store.ErrUnavailable)
	}
	cluster.Exec(t, databaseOf(t, url), "DROP TRIGGER refuses ON providers")
	awaitReady(t, opened)
	expectMade(t, opened, "new", false)
	createEach(t, opened, "new")
}
