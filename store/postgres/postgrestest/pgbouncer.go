package postgrestest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// PgBouncer is a pool in front of a cluster, in transaction pooling mode: each transaction may get another session of
// the server. pgx can use it with default_query_exec_mode=exec.
type PgBouncer struct {
	t       testing.TB
	cluster *Cluster
	home    home
	port    int
	process *process
}

// NewPgBouncer returns a PgBouncer that serves all databases of the cluster to 1,000 clients, over 20 sessions for each
// database. It is closed with the test.
func NewPgBouncer(t testing.TB, cluster *Cluster) *PgBouncer {
	t.Helper()
	folder, err := newHome()
	check(t, "start PgBouncer", err)
	b := &PgBouncer{t: t, cluster: cluster, home: folder}
	t.Cleanup(b.close)
	users := fmt.Sprintf("%q %q\n", cluster.User, cluster.Password)
	check(t, "start PgBouncer", b.home.write(filepath.Join(folder.folder, "users"), users))
	ctx, cancel := waiting(t)
	defer cancel()
	err = onFreePort(func(port int) error {
		b.port = port
		settings := filepath.Join(folder.folder, strconv.Itoa(port)+".ini")
		if err := b.home.write(settings, b.settings()); err != nil {
			return err
		}
		if b.process, err = b.home.start(syscall.SIGKILL, "/usr/sbin/pgbouncer", settings); err != nil {
			return err
		}
		return b.process.awaitAnswer(ctx, b.URL(ownDatabase))
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

// URL returns the URL of a database of the cluster by way of PgBouncer, with user and password.
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
