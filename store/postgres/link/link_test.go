package link_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/providerd/store/postgres/link"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// relaying returns the address of a host that relays connections to a cluster.
func relaying(t *testing.T, cluster *postgrestest.Cluster) string {
	t.Helper()
	return processtest.Answering(t, func(caller net.Conn) { processtest.Relay(caller, cluster.Address()) })
}

// open opens a pool of one connection to the hosts of a cluster.
func open(t *testing.T, servers *link.Servers, cluster *postgrestest.Cluster, parameters string, hosts ...string) *sql.DB {
	t.Helper()
	list := strings.Join(hosts, ",")
	url := processtest.Try(link.ParseURL(strings.Replace(cluster.URL("postgres"), cluster.Address(), list, 1) + parameters)).Must(t)
	if want := "postgres://" + list + "/postgres"; url.String() != want || !url.HasPassword() {
		t.Errorf("the URL is %s, want %s; it has a password: %v", url, want, url.HasPassword())
	}
	pool := servers.Open(url, 1, func(context.Context, *pgx.Conn) error { return nil })
	return processtest.Closing(t, pool, nil)
}

// The hosts of a URL are tried in order, an avoided one last, and the preferred one first. Connections to other hosts
// than that, and those that the server has closed, are not used again.
func TestHosts(t *testing.T) {
	t.Parallel()
	cluster, servers := postgrestest.NewCluster(t), new(link.Servers)
	first, second := relaying(t, cluster), relaying(t, cluster)
	pool := open(t, servers, cluster, "&connect_timeout=60", first, second)
	expect := func(host string) (opened *link.Link) {
		t.Helper()
		conn := processtest.Try(pool.Conn(t.Context())).Must(t)
		processtest.Must(t, conn.Raw(func(driver any) error {
			opened = link.Of(driver.(*stdlib.Conn).Conn().PgConn().Conn())
			return nil
		}))
		if address := opened.RemoteAddr().String(); address != host || servers.IsStale(opened) {
			t.Errorf("connected to %s, want %s; it is stale: %v", address, host, servers.IsStale(opened))
		}
		processtest.Must(t, conn.Close())
		return opened
	}
	toFirst := expect(first)
	processtest.Expect(t, expect(first) == toFirst, "a connection is not used again")
	servers.Avoid(toFirst)
	toSecond := expect(second)
	if servers.Avoid(toFirst); !servers.IsStale(toFirst) || expect(second) != toSecond {
		t.Error("a host was avoided for a connection that was stale")
	}
	servers.Prefer(toFirst)
	again := expect(first)
	cluster.Exec(t, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'providerd'")
	processtest.WaitUntil(t, "the connection is replaced", func() bool { return expect(first) != again })
}

// A host that accepts connections but is silent is left for the next one, and then tried last.
func TestSilentHost(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	silent := processtest.Answering(t, func(caller net.Conn) {
		tries.Add(1)
		_, _ = io.Copy(io.Discard, caller)
	})
	cluster := postgrestest.NewCluster(t)
	pool := open(t, new(link.Servers), cluster, "", silent, relaying(t, cluster))
	processtest.WaitUntil(t, "the silent host is not tried", func() bool {
		before := tries.Load()
		conn, err := pool.Conn(t.Context())
		if err == nil {
			// The pool opens another one next time.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		return err == nil && tries.Load() == before
	})
	processtest.Expect(t, tries.Load() != 0, "the silent host was never tried")
}

// A mistake in a URL that needs no server to be found has one line: the cause, then one remedy.
func TestMistakesInURLs(t *testing.T) {
	t.Parallel()
	readable := filepath.Join(t.TempDir(), "readable")
	processtest.Must(t, os.WriteFile(readable, []byte("*:*:*:*:canary\n"), 0o640))
	for text, want := range map[string]string{
		"postgres://ada:canary@127.0.0.1/shop?sslmode=verify-full&sslrootcert=/nowhere": "parse the database URL: failed to configure TLS (unable to read CA file: open /nowhere: no such file or directory); correct it in the URL or in the PG variables of the environment",
		"postgres://ada:canary@127.0.0.1/shop?sslmode=on":                               "parse the database URL: failed to configure TLS (sslmode is invalid); set it to disable, allow, prefer, require, verify-ca or verify-full",
		"postgres://ada:canary@127.0.0.1:port/shop":                                     "parse the database URL: invalid port; correct it in the URL or in the PG variables of the environment",
		"postgres://ada@127.0.0.1/shop?passfile=/nowhere/pgpass":                        "password file /nowhere/pgpass: no such file or directory; write HOST:PORT:DATABASE:USER:PASSWORD into it, or unset PGPASSFILE",
		"postgres://ada@127.0.0.1/shop?passfile=" + readable:                            "password file " + readable + ": other users can access it; run chmod 600 " + readable,
	} {
		if _, err := link.ParseURL(text); fmt.Sprint(err) != want {
			t.Errorf("%s: error is\n%v\nwant\n%s", text, err, want)
		}
	}
}
