//go:build slow

package failover_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	patroniNodes    = 3
	patroniDatabase = "postgres"
)

// managed is a group of nodes managed by Patroni.
type managed struct{ *postgrestest.Patroni }

// newManaged starts nodes with an empty database, and returns a URL of all nodes.
func newManaged(t *testing.T) (managed, string) {
	t.Helper()
	processtest.NeedPrograms(t, "patroni", "patroni", "etcd")
	m := managed{postgrestest.NewPatroni(t, patroniNodes)}
	return m, m.URL(patroniDatabase)
}

func (m managed) restore(t *testing.T) {
	t.Helper()
	m.Restore(t)
}

func (m managed) current(t *testing.T) string {
	t.Helper()
	return m.Primary(t).URL(patroniDatabase)
}

// replace calls strike with the primary, and returns that node once another one is the primary.
func (m managed) replace(t *testing.T, strike func(old *postgrestest.PatroniNode)) *postgrestest.PatroniNode {
	t.Helper()
	old := m.Primary(t)
	strike(old)
	m.Primary(t, old)
	return old
}

// patroniKinds returns the faults of nodes managed by Patroni. Unless a fault does so itself, restore thaws frozen
// nodes and restarts killed ones.
func patroniKinds() []failoverKind[managed] {
	return []failoverKind[managed]{
		{"Patroni: PostgreSQL killed", func(t *testing.T, _ *failover, m managed) { m.Primary(t).KillPostgreSQL() }},
		{"Patroni: node killed", func(t *testing.T, _ *failover, m managed) {
			m.replace(t, (*postgrestest.PatroniNode).Kill)
		}},
		{"Patroni: switchover", func(t *testing.T, _ *failover, m managed) {
			m.replace(t, func(*postgrestest.PatroniNode) { m.Switchover(t) })
		}},
		{"Patroni: node frozen, and thawed later", func(t *testing.T, _ *failover, m managed) {
			m.replace(t, (*postgrestest.PatroniNode).Freeze).Thaw()
		}},
		{"Patroni: Patroni alone frozen", func(t *testing.T, _ *failover, m managed) {
			old := m.replace(t, (*postgrestest.PatroniNode).FreezePatroni)
			endWaits(t, old.URL(patroniDatabase), "pg_cancel_backend", noticeTime)
		}},
	}
}

// endWaits cancels or terminates commits that wait for a standby, for a length of time.
func endWaits(t *testing.T, url, function string, length time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for begun := time.Now(); time.Since(begun) < length; <-time.After(cancelInterval) {
		_, err := conn.Exec(t.Context(), "SELECT "+function+"(pid) FROM pg_stat_activity WHERE wait_event = $1", "SyncRep")
		if err != nil {
			t.Fatal(err)
		}
	}
}
