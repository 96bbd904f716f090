//go:build slow

package changes_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// insertLate inserts a provider, as a create does.
const insertLate = `INSERT INTO providers (uid, kind, name, created_at, created_by, request_id, remote_address, secret,
		generated, property_mappings, property_mappings_group, delegated_subject, scopes, exclude_users_service_account,
		user_delete_action, group_delete_action, default_group_email_domain)
	SELECT gen_random_uuid(), 'workspace_directory', 'late', created_at, created_by, request_id, remote_address, secret, 0,
		'[]', '[]', '', '', true, 'suspend', 'suspend', '' FROM providers WHERE pk = 1`

// TestLateCommits keeps a transaction open that has generated a pk, and lets its COMMIT wait a minute for a standby. Until
// it has ended, neither lines nor heads pass it.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	s := overURL(t, url, 1)
	client := contracttest.Client(t)
	s.servers[0].Create(t, client)
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	tx, err := connection.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), insertLate)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.servers[0].Create(t, client)
	ended, messages := make(chan []byte, 2), processtest.Buffer{}
	for _, arguments := range [][]string{{"audit", "--output", "jsonl"}, {"audit", "head"}} {
		go func() {
			command := s.command(t, arguments...)
			command.Stderr = &messages
			output, _ := command.Output()
			ended <- output
		}()
	}
	cluster.Await(t, "SELECT count(*) >= 2 FROM pg_stat_activity WHERE query LIKE '%pg_snapshot_xmin%' AND pid <> pg_backend_pid()")
	cluster.Set(t, "synchronous_standby_names", "nobody")
	committed := make(chan error)
	go func() { committed <- tx.Commit(t.Context()) }()
	cluster.Await(t, "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $1", connection.PgConn().PID())
	processtest.WaitUntil(t, "both say that they wait", func() bool {
		return strings.Count(messages.String(), "a transaction has been open for 1m0s") == cap(ended)
	})
	if len(ended) > 0 {
		t.Fatalf("printed before the transaction has ended: %s", <-ended)
	}
	cluster.Set(t, "synchronous_standby_names", "")
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	var heads []byte
	for range cap(ended) {
		output := <-ended
		if output[0] != '{' {
			heads = output
			continue
		}
		var pks []int64
		for _, line := range linesOf(t, string(output)) {
			if line.Event == "provider created" {
				pks = append(pks, line.ID)
			}
		}
		if !slices.Equal(pks, []int64{1, 2, 3}) {
			t.Errorf("printed %v", pks)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "heads.txt"), heads, 0o600); err != nil {
		t.Fatal(err)
	}
	s.servers[0].Create(t, client)
	s.run(t, "audit", "verify", "--against", "heads.txt")
}

// TestUnconfirmedCommits makes a row visible that the standby does not have, so that a failover would lose it. No line is
// printed before the standby has it.
func TestUnconfirmedCommits(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	s := overURL(t, url, 1)
	s.servers[0].Create(t, contracttest.Client(t))
	s.servers[0].Stop(t)
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	cluster.Set(t, "synchronous_standby_names", "nobody")
	committed := make(chan error)
	go func() {
		_, err := connection.Exec(t.Context(), insertLate)
		committed <- err
	}()
	cluster.Await(t, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	command := s.command(t, "audit", "--output", "jsonl")
	var messages strings.Builder
	command.Stderr = &messages
	output, err := command.Output()
	if err == nil || len(output) > 0 || !strings.Contains(messages.String(), "confirm that standbys have what was read") {
		t.Errorf("printed %s, %v: %s", output, err, &messages)
	}
	cluster.Set(t, "synchronous_standby_names", "")
	output, err = s.command(t, "audit", "--output", "jsonl").Output()
	if err != nil {
		t.Fatal(err)
	}
	if lines := linesOf(t, string(output)); lines[len(lines)-1].ID != 2 {
		t.Errorf("the last line is %v", lines[len(lines)-1])
	}
}
