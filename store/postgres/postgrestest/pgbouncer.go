package postgrestest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// PgBouncer pools the connections of a cluster in transaction mode: each transaction may get another session of the
// server. With pgx, it needs default_query_exec_mode=exec.
type PgBouncer struct {
	t       testing.TB
	cluster *Cluster
	home    home
	port    int
	process *process
}

// NewPgBouncer starts a PgBouncer for all databases of the cluster, with up to 1,000 clients and 20 sessions per
// database. It is closed with the test.
func NewPgBouncer(t testing.TB, cluster *Cluster) *PgBouncer {
	t.Helper()
	dir, err := newHome()
	check(t, "start PgBouncer", err)
	b := &PgBouncer{t: t, cluster: cluster, home: dir}
	t.Cleanup(b.close)
	users := fmt.Sprintf("%q %q\n", cluster.User, cluster.Password)
	check(t, "start PgBouncer", b.home.write(filepath.Join(dir.dir, "users"), users))
	ctx, cancel := waiting(t)
	defer cancel()
	err = onFreePort(func(port int) error {
		b.port = port
		settings := filepath.Join(dir.dir, strconv.Itoa(port)+".ini")
		if err := b.home.write(settings, b.settings()); err != nil {
			return err
		}
		if b.process, err = b.home.start(syscall.SIGKILL, "/usr/sbin/pgbouncer", settings); err != nil {
			return err
		}
		return b.process.awaitReady(ctx, b.URL(ownDatabase), b.cluster.Name)
	})
	check(t, "start PgBouncer; if it is missing, run make postgres, or apt-get install pgbouncer", err)
	return b
}

func (b *PgBouncer) settings() string {
	return fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = users
pool_mode = transaction
default_pool_size = 20
max_client_conn = 1000
`, b.cluster.port, b.port)
}

// URL returns the URL of a database of the cluster through PgBouncer, with user and password.
func (b *PgBouncer) URL(database string) string {
	return databaseURL(b.cluster.User, b.cluster.Password, "127.0.0.1:"+strconv.Itoa(b.port), database)
}

func (b *PgBouncer) close() {
	b.t.Helper()
	ctx, cancel := waiting(b.t)
	defer cancel()
	var err error
	if b.process != nil {
		err = errors.Join(b.process.signal(syscall.SIGKILL), b.process.wait(ctx))
	}
	check(b.t, "close PgBouncer", errors.Join(err, b.home.remove()))
}
