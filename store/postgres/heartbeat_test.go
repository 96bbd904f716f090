//go:build slow

package postgres_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/postgres/postgrestest"
)

// A sign of life that waits for a lock holds up neither creates nor readiness, as long as the last one counts.
func TestBlockedHeartbeatHoldsNothingUp(t *testing.T) {
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
	// The sign of life gives up after 2 seconds, and another one follows.
	await(t, "a create is stored while a sign of life waits", func() bool {
		awaitWait(t, watching, "relation")
		_, err := keyedCreate(t.Context(), opened, rand.Text())
		readyErr := opened.Ready(t.Context())
		if err != nil || readyErr != nil {
			t.Fatalf("create: %v; Ready: %v", err, readyErr)
		}
		return countWaits(t, watching, "relation") > 0
	})
}
