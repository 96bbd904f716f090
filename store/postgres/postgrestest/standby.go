package postgrestest

import (
	"fmt"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// AddStandby starts a new standby of the cluster, which is asynchronous until RequireStandby. It is closed
// with the test.
func (c *Cluster) AddStandby(t testing.TB) *Cluster {
	t.Helper()
	standby := newNode(t, c.locale)
	standby.Password = c.Password
	primary := fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s sslmode=disable application_name=%s",
		c.port, superuser, c.Password, standby.name)
	processtest.Run(t, standby.Command(Binary(t, "pg_basebackup"), "--dbname", primary,
		"--pgdata", "data", "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"))
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
	c.Exec(t, ownDatabase, "SELECT pg_promote(wait => false)")
	c.Await(t, "SELECT NOT pg_is_in_recovery()")
}
