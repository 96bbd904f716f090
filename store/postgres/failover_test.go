//go:build slow

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
)

// maxStall is how long after a promotion reads and commits may stall.
const maxStall = 3 * time.Second

// urlOfBoth returns a URL of both servers, the old primary first.
func (r *replicated) urlOfBoth(t *testing.T) string {
	t.Helper()
	parsed, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Host += "," + r.standby.Address()
	return parsed.String()
}

// inFlight starts a read that keeps its connection, and returns a function that ends it.
func inFlight(t *testing.T, opened *postgres.Database) func() {
	t.Helper()
	rows, err := opened.Reader().WithContext(t.Context()).Raw("SELECT 1").Rows()
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Commits and reads leave a frozen primary for the new one, even if that needs a new connection.
func TestFrozenPrimaryIsLeft(t *testing.T) {
	t.Parallel()
	for _, parameter := range []string{"connect_timeout=30", "application_name=providerd"} {
		t.Run(parameter, func(t *testing.T) {
			t.Parallel()
			r := newReplicated(t)
			opened := create(t, with(r.urlOfBoth(t), parameter))
			if err := insert(t.Context(), opened, "before"); err != nil {
				t.Fatal(err)
			}
			inFlight(t, opened)()
			r.primary.Freeze()
			const each = 3
			errs := make(chan error, 2*each)
			for i := range each {
				go func() {
					var count int64
					ctx, cancel := context.WithTimeout(t.Context(), 2*maxStall)
					defer cancel()
					errs <- opened.Reader().WithContext(ctx).Table("applications").Count(&count).Error
				}()
				go func() { errs <- insert(t.Context(), opened, fmt.Sprint("after-", i)) }()
			}
			r.standby.Promote(t)
			promoted := time.Now()
			for range 2 * each {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if took := time.Since(promoted); took > maxStall {
				t.Errorf("switching took %v", took)
			}
		})
	}
}

// However long a primary was frozen and however often it was tried, the new one is found at once.
func TestPrimaryFrozenForLongIsLeft(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	opened := create(t, r.urlOfBoth(t))
	r.primary.Freeze()
	for range 2 {
		if err := insert(t.Context(), opened, "refused"); !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("error is %v, want ErrUnavailable", err)
		}
	}
	r.standby.Promote(t)
	if err := insert(t.Context(), opened, "after"); err != nil {
		t.Error(err)
	}
}

// Once another server has committed, no connection reads from an old primary that still runs.
func TestOldPrimaryIsNotRead(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	opened := create(t, r.urlOfBoth(t))
	closeRows := inFlight(t, opened)
	r.standby.Promote(t)
	for insert(t.Context(), opened, "after") != nil {
		if t.Context().Err() != nil {
			t.Fatal("nothing is committed")
		}
	}
	closeRows()
	var old []func()
	for range 4 {
		if found := slugs(t, opened); len(found) != 1 || found[0] != "after" {
			t.Errorf("slugs are %q", found)
		}
		// The next read needs another connection.
		old = append(old, inFlight(t, opened))
	}
	for _, closeRows := range old {
		closeRows()
	}
}

// Commits whose connections the server terminates release those connections.
func TestTerminatedCommitsReleaseConnections(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened := create(t, url)
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER dies AFTER INSERT ON applications DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.slug = 'dies') EXECUTE FUNCTION die()`)
	for range 20 {
		if err := insert(t.Context(), opened, "dies"); !errors.Is(err, database.ErrOutcomeUnknown) {
			t.Fatalf("error is %v, want ErrOutcomeUnknown", err)
		}
	}
	if err := insert(t.Context(), opened, "lives"); err != nil {
		t.Error(err)
	}
}

// A probe that waits for a standby is canceled on the server when it times out.
func TestTimedOutProbesAreCanceled(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	opened := create(t, r.urlOfBoth(t))
	waits := create(t, r.url)
	r.standby.Freeze()
	for begun := time.Now(); time.Since(begun) < 2*maxStall; {
		if err := opened.Check(t.Context()); !errors.Is(err, database.ErrUnavailable) {
			t.Fatalf("error is %v, want ErrUnavailable", err)
		}
	}
	await(t, "no probe waits", func() bool { return countWaits(t, waits, "SyncRep") == 0 })
	r.standby.Thaw()
}

// A change waits longer for another change than for a frozen server.
func TestChangesTakeTurns(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewCluster(t).CreateDatabase(t)
	opened, other := create(t, url), create(t, url)
	begun, released := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- opened.Change(t.Context(), func(*gorm.DB) error {
			close(begun)
			<-released
			return nil
		})
	}()
	<-begun
	second := make(chan error, 1)
	go func() { second <- other.Change(t.Context(), func(*gorm.DB) error { return nil }) }()
	awaitWait(t, opened, "advisory")
	// More than a server may take to begin.
	<-time.After(1200 * time.Millisecond)
	close(released)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}
