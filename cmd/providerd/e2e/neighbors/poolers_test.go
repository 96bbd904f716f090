//go:build proof

package neighbors_test

import (
	"net/url"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

func poolers() []neighbor {
	const did = "pooled 2 servers; PostgreSQL restarted twice"
	return []neighbor{
		{
			"PgBouncer, `pool_mode = transaction`", did, "Add `default_query_exec_mode=exec` to the URL, and set `server_login_retry = 1`: PgBouncer waits 15 s after a restart.",
			func(t *testing.T) (string, counts) { return pool(t, "transaction") },
		},
		{
			"PgBouncer, `pool_mode = session`", asAbove, "The same. `statement` is refused when a server starts.",
			func(t *testing.T) (string, counts) { return pool(t, "session") },
		},
	}
}

// pool runs two servers behind a pooler while PostgreSQL restarts.
func pool(t *testing.T, mode string) (string, counts) {
	t.Helper()
	cluster := postgrestest.NewCluster(t)
	direct := cluster.CreateDatabase(t)
	parsed, err := url.Parse(direct)
	processtest.Must(t, err)
	database := strings.TrimPrefix(parsed.Path, "/")
	fleet := providerdtest.StartFleet(t, postgrestest.NewPgBouncer(t, cluster, "pool_mode = "+mode)(database), 2)
	l := start(t, func(caller int) *providerdtest.Server { return fleet.Replica(caller / 2 % 2) })
	for range 2 {
		l.WaitForMore(t, 300)
		cluster.Stop(t)
		cluster.Start(t)
	}
	l.WaitForMore(t, 300)
	l.Stop()
	fleet.Stop(t)
	byStatement := postgrestest.NewPgBouncer(t, cluster, "pool_mode = statement")(database)
	providerdtest.ExpectExit(t, fleet.Command(t.Context(), "PROVIDERD_DATABASE="+byStatement, "serve", "--listen", "127.0.0.1:0"),
		providerdtest.ExitFailed, "pool_mode")
	return printed(t, `\d[\d.]+`, "/usr/sbin/pgbouncer", "--version"), l.count(t, fleet.Stored(t, direct))
}
