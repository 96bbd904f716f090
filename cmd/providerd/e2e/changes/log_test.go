//go:build slow

package changes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// line is a line of "audit list --output jsonl".
type line struct {
	ID, Subject         int64
	Event, Kind, Digest string
}

// linesOf parses lines. A kill can cut one, after which the next follows at once.
func linesOf(t *testing.T, text string) (lines []line) {
	t.Helper()
	for one := range strings.Lines(text) {
		var parsed line
		if err := json.Unmarshal([]byte(one[max(0, strings.LastIndex(one, `{"id":`)):]), &parsed); err != nil {
			t.Fatal(err, one)
		}
		lines = append(lines, parsed)
	}
	return lines
}

// TestFollowKilled follows the log of servers under load and kills the program again and again. Each run continues after
// the lines of the last one, and no event is missing.
func TestFollowKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		client, journal := contracttest.Client(t), providerdtest.NewJournal()
		load := journal.Load(8, "followed", func(name string) (providerdtest.Record, error) {
			return s.anyServer().CreateOnce(client, name)
		})
		kills := processtest.ProofSize(t, "faults", 3)
		for round := range kills {
			s.followUntilKilled(t)
			if round%4 == 0 {
				s.RunCommand(t, "token", "create", "--name", "revoked", "--allow", "all")
				s.RunCommand(t, "token", "revoke", "--name", "revoked")
			}
		}
		load.Stop()
		// It also compares the lines with the database.
		providerdtest.StartFollower(t, s.Dir, s.Command).Verify(t)
		text := processtest.Try(os.ReadFile(filepath.Join(s.Dir, "followed.jsonl"))).Must(t)
		created, revoked := map[int64]bool{}, map[int64]bool{}
		for _, line := range linesOf(t, string(text)) {
			switch line.Event {
			case "provider created":
				created[line.Subject] = true
			case "token revoked":
				revoked[line.Subject] = true
			}
		}
		missing := 0
		for _, record := range journal.Creates {
			if !created[record.PK] {
				missing++
			}
		}
		if revocations := (kills + 3) / 4; missing > 0 || len(revoked) != revocations {
			t.Errorf("%d of %d creates are missing, and %d of %d revocations were followed", missing, len(journal.Creates),
				len(revoked), revocations)
		}
		t.Logf("%d kills, %d creates, %d missing", kills, len(journal.Creates), missing)
	})
}

// followUntilKilled appends lines to a file until the program is killed at a random time, soon after it has printed.
func (s *site) followUntilKilled(t *testing.T) {
	file := processtest.Try(os.OpenFile(filepath.Join(s.Dir, "followed.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)).Must(t)
	defer func() { _ = file.Close() }()
	size := func() int64 {
		return processtest.Try(file.Stat()).Must(t).Size()
	}
	before := size()
	command := s.Command(t.Context(), "audit", "list", "--output", "jsonl", "--cursor-file", "followed.jsonl.cursor", "--follow")
	command.Stdout = file
	child := processtest.Try(processtest.Start(command)).Must(t)
	processtest.WaitUntil(t, "lines are printed", func() bool { return size() > before })
	<-time.After(rand.N(50 * time.Millisecond))
	if err := child.Kill(); err != nil {
		t.Fatalf("%v: %s", err, child.Stderr)
	}
}

const insertLate = `INSERT INTO providers (uid, kind, name, created_at, created_by, request_id, remote_address, secret,
		generated, property_mappings, property_mappings_group, delegated_subject, scopes, exclude_users_service_account,
		user_delete_action, group_delete_action, default_group_email_domain)
	SELECT gen_random_uuid(), 'workspace_directory', 'late', created_at, created_by, request_id, remote_address, secret, 0,
		'[]', '[]', '', '', true, 'suspend', 'suspend', '' FROM providers WHERE pk = 1`

// TestLateCommits keeps a transaction open that has the id of an event, and lets its COMMIT wait for a standby. Until it
// has ended, no line passes it.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	cluster, s, connection := beginLate(t)
	s.Replicas[0].Create(t, contracttest.Client(t))
	log := s.startLog(t)
	cluster.Set(t, "synchronous_standby_names", "nobody")
	committed := make(chan error)
	go func() { committed <- execute(t, connection, "COMMIT") }()
	cluster.Await(t, "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $1", connection.PgConn().PID())
	log.expectWait(t, fmt.Sprintf("process %d of postgres in database", connection.PgConn().PID()))
	cluster.Set(t, "synchronous_standby_names", "")
	processtest.Must(t, <-committed)
	log.expectCreated(t, 1, 2, 3)
}

// TestPreparedTransactions lets lines wait for a prepared transaction, and for a transaction in another database.
func TestPreparedTransactions(t *testing.T) {
	t.Parallel()
	cluster, s, connection := beginLate(t)
	processtest.Must(t, execute(t, connection, "PREPARE TRANSACTION 'late'"))
	s.Replicas[0].Create(t, contracttest.Client(t))
	log := s.startLog(t)
	log.expectWait(t, "prepared transaction 'late' of postgres in database")
	processtest.Must(t, execute(t, connection, "COMMIT PREPARED 'late'"))
	log.expectCreated(t, 1, 2, 3)
	neighbor := connect(t, cluster.URL("postgres"))
	processtest.Must(t, execute(t, neighbor, "BEGIN; SELECT pg_current_xact_id()"))
	log = s.startLog(t)
	log.expectWait(t, fmt.Sprintf("process %d of postgres in database postgres, since", neighbor.PgConn().PID()))
	processtest.Must(t, execute(t, neighbor, "ROLLBACK"))
	log.expectCreated(t, 1, 2, 3)
}

// TestUnconfirmedCommits makes a row visible that a failover would lose. No line is printed before the standby has it.
func TestUnconfirmedCommits(t *testing.T) {
	t.Parallel()
	cluster, s, connection := beginLate(t)
	s.Replicas[0].Stop(t)
	cluster.Set(t, "synchronous_standby_names", "nobody")
	committed := make(chan error)
	go func() { committed <- execute(t, connection, "COMMIT") }()
	cluster.Await(t, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	processtest.Must(t, <-committed)
	unconfirmed := s.startLog(t)
	if err := unconfirmed.Wait(); err == nil || unconfirmed.Stdout.String() != "" ||
		!strings.Contains(unconfirmed.Stderr.String(), "outcome of the commit is unknown") {
		t.Errorf("printed %s, %v: %s", unconfirmed.Stdout, err, unconfirmed.Stderr)
	}
	cluster.Set(t, "synchronous_standby_names", "")
	output, _ := s.Command(t.Context(), "audit", "list", "--output", "jsonl").Output()
	lines := linesOf(t, string(output))
	processtest.Expect(t, len(lines) != 0 && lines[len(lines)-1].Subject == 2, "printed %s", output)
}

// beginLate starts a server, which creates a provider, and begins a transaction that inserts another one.
func beginLate(t *testing.T) (cluster *postgrestest.Cluster, s *site, connection *pgx.Conn) {
	t.Helper()
	cluster = postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	s = &site{providerdtest.StartFleet(t, url, 1)}
	s.Replicas[0].Create(t, contracttest.Client(t))
	connection = connect(t, url)
	processtest.Must(t, execute(t, connection, "BEGIN; "+insertLate))
	return cluster, s, connection
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	connection := processtest.Try(pgx.Connect(t.Context(), url)).Must(t)
	t.Cleanup(func() { _ = connection.Close(context.WithoutCancel(t.Context())) })
	return connection
}

func execute(t *testing.T, connection *pgx.Conn, statement string) error {
	t.Helper()
	_, err := connection.Exec(t.Context(), statement)
	return err
}

// log is a command that prints the log.
type log struct {
	site *site
	*processtest.Child
}

func (s *site) startLog(t *testing.T) *log {
	t.Helper()
	child := processtest.Try(processtest.Start(s.Command(t.Context(), "audit", "list", "--output", "jsonl"))).Must(t)
	return &log{site: s, Child: child}
}

func (l *log) expectWait(t *testing.T, transaction string) {
	t.Helper()
	processtest.WaitUntil(t, "it says what it waits for", func() bool {
		return strings.Contains(l.Stderr.String(), "waiting for an open transaction, which may still add events: "+transaction)
	})
	processtest.Require(t, !l.HasEnded() && l.Stdout.String() == "", "printed before the transaction ended: %s", l.Stdout)
}

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
	processtest.Equal(t, pks, want, "printed providers")
	processtest.Must(t, os.WriteFile(filepath.Join(l.site.Dir, "lines.jsonl"), []byte(output), 0o600))
	// The secret of the inserted provider is that of another one.
	providerdtest.ExpectExit(t, l.site.Command(t.Context(), "audit", "verify", "lines.jsonl"), providerdtest.ExitFailed,
		"nothing differs, but 1 line could not be compared")
}
