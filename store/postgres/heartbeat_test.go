package postgres_test

import (
	"context"
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
	awaitWait(t, watching, "relation")
	_, err = keyedCreate(t.Context(), opened, "a")
	readyErr := opened.Ready(t.Context())
	if countWaits(t, watching, "relation") == 0 {
		t.Error("the sign of life was not waiting any more")
	}
	if err != nil || readyErr != nil {
		t.Errorf("create: %v; Ready: %v", err, readyErr)
	}
}
