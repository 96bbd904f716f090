//go:build slow

package postgres_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// A heartbeat that waits for a lock delays neither creates nor readiness while the previous one is recent.
func TestBlockedHeartbeatDelaysNothing(t *testing.T) {
	t.Parallel()
	url := postgrestest.NewCluster(t).CreateDatabase(t)
	opened, watching := openStore(t, url, newKeyset(t)), create(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE replicas IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	// The heartbeat gives up after 2 seconds, and another one follows.
	processtest.WaitUntil(t, "a create is stored while a heartbeat waits", func() bool {
		awaitWait(t, watching, "relation")
		_, err := keyedCreate(t.Context(), opened, rand.Text())
		readyErr := opened.Ready(t.Context())
		if err != nil || readyErr != nil {
			t.Fatalf("create: %v; Ready: %v", err, readyErr)
		}
		return countWaits(t, watching, "relation") > 0
	})
}
