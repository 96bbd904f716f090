//go:build proof

package failover_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/storetest/processtest"
)

// patroniKinds returns the faults of nodes managed by Patroni. Unless a fault does so itself, restore thaws frozen
// nodes and restarts killed ones.
func patroniKinds() []failoverKind[managed] {
	return []failoverKind[managed]{
		{"Patroni: PostgreSQL killed", func(t *testing.T, _ *failover, m managed) { m.primary(t).killPostgreSQL() }},
		{"Patroni: node killed", func(t *testing.T, _ *failover, m managed) {
			m.replace(t, (*managedNode).Kill)
		}},
		{"Patroni: switchover", func(t *testing.T, _ *failover, m managed) {
			m.replace(t, func(old *managedNode) { m.switchOver(t, old) })
		}},
		{"Patroni: node frozen, and thawed later", func(t *testing.T, _ *failover, m managed) {
			m.replace(t, (*managedNode).Freeze).Thaw()
		}},
		{"Patroni: Patroni alone frozen", func(t *testing.T, _ *failover, m managed) {
			old := m.replace(t, (*managedNode).freezePatroni)
			endWaits(t, old.url(), "pg_cancel_backend", noticeTime)
		}},
	}
}

// endWaits cancels or terminates commits that wait for a standby, for a length of time.
func endWaits(t *testing.T, url, function string, length time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	processtest.Must(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	for begun := time.Now(); time.Since(begun) < length; <-time.After(cancelInterval) {
		_, err := conn.Exec(t.Context(), "SELECT "+function+"(pid) FROM pg_stat_activity WHERE wait_event = $1", "SyncRep")
		processtest.Must(t, err)
	}
}
