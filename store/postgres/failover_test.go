//go:build slow

package postgres_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// A probe that waits for a standby is canceled on the server when it times out.
func TestTimedOutProbesAreCanceled(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	opened := create(t, r.url)
	waits := create(t, r.url)
	r.standby.Freeze()
	for begun := time.Now(); time.Since(begun) < 6*time.Second; {
		if err := opened.Check(t.Context()); !errors.Is(err, database.ErrUnavailable) {
			t.Fatalf("error is %v, want ErrUnavailable", err)
		}
	}
	processtest.WaitUntil(t, "no probe waits", func() bool { return countWaits(t, waits, "SyncRep") == 0 })
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
		first <- opened.Write(t.Context(), func(*gorm.DB) error {
			close(begun)
			<-released
			return nil
		})
	}()
	<-begun
	second := make(chan error, 1)
	go func() { second <- other.Write(t.Context(), func(*gorm.DB) error { return nil }) }()
	awaitWait(t, opened, "advisory")
	// More than a server may take to begin.
	<-time.After(1200 * time.Millisecond)
	close(released)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}
