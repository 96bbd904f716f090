//go:build slow

package failover_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
)

const (
	patroniNodes    = 3
	patroniDatabase = "postgres"
)

// managed is nodes under Patroni.
type managed struct{ *postgrestest.Patroni }

// newManaged returns nodes with an empty database, and the URL that names them all.
func newManaged(t *testing.T) (managed, string) {
	t.Helper()
	providerdtest.NeedPrograms(t, "patroni", "patroni", "etcd")
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

// replace lets something happen to the primary, and returns it once another node leads.
func (m managed) replace(t *testing.T, strike func(old *postgrestest.PatroniNode)) *postgrestest.PatroniNode {
	t.Helper()
	old := m.Primary(t)
	strike(old)
	m.Primary(t, old)
	return old
}

// patroniKinds are the faults of nodes under Patroni. What is frozen is thawed, and what is killed started again, in
// restore, unless it is said here.
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
			endWaits(t, old.URL(patroniDatabase), "pg_cancel_backend", noticing)
		}},
	}
}

// endWaits cancels or terminates commits that wait for a standby, for some time.
func endWaits(t *testing.T, url, function string, length time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for begun := time.Now(); time.Since(begun) < length; <-time.After(respite) {
		_, err := conn.Exec(t.Context(), "SELECT "+function+"(pid) FROM pg_stat_activity WHERE wait_event = $1", "SyncRep")
		if err != nil {
			t.Fatal(err)
		}
	}
}
