//go:build slow

package changes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/cmd/providerd/providerdtest"
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

// TestLateCommits keeps a transaction open that has the id of an event, and lets its COMMIT wait for a standby. Until it
// has ended, no line passes it.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	cluster, s, connection, tx := beginLate(t)
	s.Replicas[0].Create(t, contracttest.Client(t))
	log := s.startLog(t)
	cluster.Set(t, "synchronous_standby_names", "nobody")
	committed := make(chan error)
	go func() { committed <- tx.Commit(t.Context()) }()
	cluster.Await(t, "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $1", connection.PgConn().PID())
	log.expectWait(t, fmt.Sprintf("process %d of postgres in database", connection.PgConn().PID()))
	cluster.Set(t, "synchronous_standby_names", "")
	processtest.Must(t, <-committed)
	log.expectCreated(t, 1, 2, 3)
}

// TestPreparedTransactions lets lines wait for a prepared transaction, and for a transaction in another database.
func TestPreparedTransactions(t *testing.T) {
	t.Parallel()
	cluster, s, connection, tx := beginLate(t)
	_, err := tx.Exec(t.Context(), "PREPARE TRANSACTION 'late'")
	processtest.Must(t, err)
	s.Replicas[0].Create(t, contracttest.Client(t))
	log := s.startLog(t)
	log.expectWait(t, "prepared transaction 'late' of postgres in database")
	_, err = connection.Exec(t.Context(), "COMMIT PREPARED 'late'")
	processtest.Must(t, err)
	log.expectCreated(t, 1, 2, 3)
	neighbor, err := pgx.Connect(t.Context(), cluster.URL("postgres"))
	processtest.Must(t, err)
	defer func() { _ = neighbor.Close(t.Context()) }()
	_, err = neighbor.Exec(t.Context(), "BEGIN; SELECT pg_current_xact_id()")
	processtest.Must(t, err)
	log = s.startLog(t)
	log.expectWait(t, fmt.Sprintf("process %d of postgres in database postgres, since", neighbor.PgConn().PID()))
	_, err = neighbor.Exec(t.Context(), "ROLLBACK")
	processtest.Must(t, err)
	log.expectCreated(t, 1, 2, 3)
}

// beginLate starts a server, which creates a provider, and begins a transaction that inserts another one.
func beginLate(t *testing.T) (cluster *postgrestest.Cluster, s *site, connection *pgx.Conn, tx pgx.Tx) {
	t.Helper()
	cluster = postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	s = startSite(t, url, 1)
	s.Replicas[0].Create(t, contracttest.Client(t))
	connection, err := pgx.Connect(t.Context(), url)
	processtest.Must(t, err)
	t.Cleanup(func() { _ = connection.Close(context.WithoutCancel(t.Context())) })
	tx, err = connection.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), insertLate)
	}
	processtest.Must(t, err)
	return cluster, s, connection, tx
}

// log is a command that prints the log.
type log struct {
	site *site
	*processtest.Child
}

func (s *site) startLog(t *testing.T) *log {
	t.Helper()
	child, err := processtest.Start(s.Command(t.Context(), "audit", "list", "--output", "jsonl"))
	processtest.Must(t, err)
	return &log{site: s, Child: child}
}

// expectWait expects that the command says what it waits for, and has printed nothing.
func (l *log) expectWait(t *testing.T, transaction string) {
	t.Helper()
	processtest.WaitUntil(t, "it says what it waits for", func() bool {
		return strings.Contains(l.Stderr.String(), "waiting for an open transaction, which may still add events: "+transaction)
	})
	if l.HasEnded() || l.Stdout.String() != "" {
		t.Fatalf("printed before the transaction has ended: %s", l.Stdout)
	}
}

// expectCreated expects that the command prints the events of these creates.
func (l *log) expectCreated(t *testing.T, want ...int64) {
	t.Helper()
	// An unreadable record makes it fail.
	_ = l.Wait()
	output := l.Stdout.String()
	var pks []int64
	for _, line := range linesOf(t, output) {
		if line.Event == "provider created" {
			pks = append(pks, line.Subject)
		}
	}
	if !slices.Equal(pks, want) {
		t.Errorf("printed %v, want %v", pks, want)
	}
	processtest.Must(t, os.WriteFile(filepath.Join(l.site.Dir, "lines.jsonl"), []byte(output), 0o600))
	// The secret of the inserted provider is that of another one.
	providerdtest.ExpectExit(t, l.site.Command(t.Context(), "audit", "verify", "lines.jsonl"), providerdtest.ExitFailed,
		"nothing differs, but 1 line could not be compared")
}

// TestUnconfirmedCommits makes a row visible that the standby does not have, so that a failover would lose it. No line is
// printed before the standby has it.
func TestUnconfirmedCommits(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	s := startSite(t, url, 1)
	s.Replicas[0].Create(t, contracttest.Client(t))
	s.Replicas[0].Stop(t)
	connection, err := pgx.Connect(t.Context(), url)
	processtest.Must(t, err)
	defer func() { _ = connection.Close(t.Context()) }()
	cluster.Set(t, "synchronous_standby_names", "nobody")
	committed := make(chan error)
	go func() {
		_, err := connection.Exec(t.Context(), insertLate)
		committed <- err
	}()
	cluster.Await(t, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	processtest.Must(t, <-committed)
	unconfirmed := s.startLog(t)
	if err := unconfirmed.Wait(); err == nil || unconfirmed.Stdout.String() != "" ||
		!strings.Contains(unconfirmed.Stderr.String(), "outcome of the commit is unknown") {
		t.Errorf("printed %s, %v: %s", unconfirmed.Stdout, err, unconfirmed.Stderr)
	}
	cluster.Set(t, "synchronous_standby_names", "")
	output, _ := s.Command(t.Context(), "audit", "list", "--output", "jsonl").Output()
	if lines := linesOf(t, string(output)); len(lines) == 0 || lines[len(lines)-1].Subject != 2 {
		t.Errorf("printed %s", output)
	}
}
