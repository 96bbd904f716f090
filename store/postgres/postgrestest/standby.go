package postgrestest

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/storetest/processtest"
)

// copyRunning copies the files of a running server as pg_basebackup does, which refuses servers of a later version. It
// ignores that tar reports files that were removed or changed.
const copyRunning = `mkdir --mode=700 data && { tar --create --directory="$1" --exclude='./postmaster.*' \
	--exclude='./pg_wal/*' --exclude='./pg_replslot/*' --exclude='./pg_dynshmem/*' . || test $? -eq 1; } |
	tar --extract --directory=data`

// AddStandby starts a new standby of the cluster, which is asynchronous until RequireStandby. It is closed
// with the test.
func (c *Cluster) AddStandby(t testing.TB) *Cluster {
	t.Helper()
	standby := newNode(t, c.programs, c.locale)
	standby.Password = c.Password
	with(t, c.URL(ownDatabase), func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "SELECT pg_backup_start('standby', true)")
		if err != nil {
			return err
		}
		processtest.Run(t, standby.Command("bash", "-c", copyRunning, "", c.Path("data")))
		var label string
		err = connection.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label)
		standby.Write("data/backup_label", label)
		return err
	})
	standby.Write("data/standby.signal", "")
	standby.Write("data/postgresql.auto.conf", fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=%s password=%s "+
		"sslmode=disable application_name=%s'\n", c.port, superuser, c.Password, standby.name))
	// Otherwise, once promoted, it would wait for the standbys of its primary.
	standby.Write("data/postgresql.auto.conf", "synchronous_standby_names = ''\n")
	standby.Start(t)
	standby.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
	return standby
}

// RequireStandby makes each commit wait until the standby has it on disk, and returns once the standby is synchronous.
func (c *Cluster) RequireStandby(t testing.TB, standby *Cluster) {
	t.Helper()
	c.Set(t, "synchronous_standby_names", standby.name)
	c.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_replication"+
		" WHERE application_name = $1 AND state = 'streaming' AND sync_state = 'sync')", standby.name)
}

// Promote promotes the standby and returns once it accepts writes. Its commits wait for no standby. If the old primary
// is running, it stays writable.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	processtest.Run(t, c.Command(c.Program("pg_ctl"), "promote", "--no-wait", "--pgdata", "data"))
	c.Await(t, "SELECT NOT pg_is_in_recovery()")
}
