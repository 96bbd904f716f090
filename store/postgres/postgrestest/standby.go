package postgrestest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// AddStandby starts a new standby of the cluster, which is asynchronous until RequireStandbys names it. It is closed
// with the test.
func (c *Cluster) AddStandby(t testing.TB) *Cluster {
	t.Helper()
	standby := newNode(t)
	ctx, cancel := waiting(t)
	defer cancel()
	standby.User, standby.Password, standby.locale = c.User, c.Password, c.locale
	primary := fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s sslmode=disable application_name=%s",
		c.port, c.User, c.Password, standby.Name)
	err := standby.home.run(ctx, c.program("pg_basebackup"), "--dbname", primary,
		"--pgdata", standby.Dir(), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	check(t, "copy "+c.Name, err)
	// Otherwise, once promoted, it would wait for the standbys of its primary.
	err = standby.home.write(filepath.Join(standby.Dir(), "postgresql.auto.conf"), "synchronous_standby_names = ''\n")
	check(t, "configure a standby", err)
	check(t, "start a standby", standby.startOnFreePort(ctx))
	standby.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
	return standby
}

// RequireStandbys makes each commit wait until all the standbys have it on disk, and returns once they are synchronous.
// Without standbys, commits do not wait, and those that are waiting complete.
func (c *Cluster) RequireStandbys(t testing.TB, standbys ...*Cluster) {
	t.Helper()
	names := make([]string, len(standbys))
	for i, standby := range standbys {
		names[i] = standby.Name
	}
	setting := ""
	if len(names) > 0 {
		setting = fmt.Sprintf("FIRST %d (%s)", len(names), strings.Join(names, ", "))
	}
	c.Set(t, "synchronous_standby_names", setting)
	c.Await(t, "SELECT count(*) = cardinality($1::text[]) FROM pg_stat_replication"+
		" WHERE application_name = ANY ($1) AND state = 'streaming' AND sync_state = 'sync'", names)
}

// Promote promotes the standby and returns once it accepts writes. Its commits wait for no standby. If the old primary
// is running, it stays writable.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	c.Exec(t, ownDatabase, "SELECT pg_promote(wait => false)")
	c.Await(t, "SELECT NOT pg_is_in_recovery()")
}
