package postgrestest

import (
	"fmt"
	"net"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// NewPgBouncer starts a PgBouncer that pools the connections of a cluster in transaction mode: each transaction may get
// another session of the server. It has up to 1,000 clients, and 20 sessions per database. At 100 sessions it closes
// idle ones of other databases, which it would keep for ten minutes. It is closed with the test. urlOf returns the URL
// of a database through it.
func NewPgBouncer(t testing.TB, cluster *Cluster) (urlOf func(database string) string) {
	t.Helper()
	port := processtest.FreePort(t)
	address, b := processtest.Local(port), NewServer(t)
	b.Write("users", fmt.Sprintf("%q %q\n", superuser, cluster.Password))
	b.Write("settings", fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = users
pool_mode = transaction
default_pool_size = 20
max_user_connections = 100
max_client_conn = 1000
`, cluster.port, port))
	b.Launch(b.Command("/usr/sbin/pgbouncer", "settings"), func() error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	return func(database string) string {
		return DatabaseURL(cluster.Password, address, database) + "&default_query_exec_mode=exec"
	}
}
