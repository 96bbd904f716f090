//go:build slow

package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// defaultRows is the default; the proof "rows" sets more.
const defaultRows = 5_000

// TestBackupUnderLoad backs up a database while 64 callers create, restores the backup elsewhere and serves it. It
// must have everything that was acknowledged before it began, unchanged, and no create may fail.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	// So many creates must complete before the backup begins.
	const atLeast = 500
	rows := processtest.ProofSize(t, "rows", defaultRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	var before map[string]providerdtest.Record
	underLoad(t, dir, 64, func(made *providerdtest.Journal) {
		made.WaitForMore(t, max(atLeast, rows/20))
		before = made.Acknowledged()
		t.Log(providerdtest.RunCommand(t, dir, "backup", "backup.db"))
	})
	providerdtest.CheckBackup(t, dir, before)
}

// copying returns a "providerd copy" in a directory, with the URLs in the environment.
func copying(ctx context.Context, dir, from, to string) *exec.Cmd {
	return providerdtest.Command(ctx, dir, "PROVIDERD_FROM="+from, "PROVIDERD_TO="+to, "copy", "--keyset", "data/keyset.json")
}

// copyAll copies everything, and returns the output and the peak memory. Neither that nor the messages may contain the
// password. The usage that the kernel reports for a child would include that of the test before it ran the program.
func copyAll(t *testing.T, dir, from, to, password string) (printed string, peakKiB int) {
	t.Helper()
	command := copying(t.Context(), dir, from, to)
	var stdout bytes.Buffer
	command.Stdout = &stdout
	child, err := processtest.Start(command)
	processtest.Must(t, err)
	peakKiB = providerdtest.WaitPeakKiB(t, child)
	processtest.Require(t, command.ProcessState.Success(), "%v: %s", command.ProcessState, child.Stderr)
	processtest.Expect(t, !strings.Contains(stdout.String()+child.Stderr.String(), password),
		"the password is in %s%s", &stdout, child.Stderr)
	return stdout.String(), peakKiB
}

// TestCopyThereAndBack copies from SQLite to PostgreSQL and back, and times it. The next pk is higher than that of a
// provider that was deleted before.
func TestCopyThereAndBack(t *testing.T) {
	t.Parallel()
	// maxMemory limits the memory of a copy of any size, in MiB.
	const maxMemory = 256
	rows := processtest.ProofSize(t, "rows", defaultRows)
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	const create = "provider create oauth2 --as ci name=x authorization_flow=3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01 --quiet"
	for _, line := range []string{
		"token create --name ci --allow all", "token create --name other --allow all", "token revoke 1",
		"application create shop --name Shop --provider 1 --backchannel 2", "application create empty --name Empty",
		create, fmt.Sprintf("provider delete %d --yes", rows+1),
	} {
		providerdtest.RunCommand(t, dir, strings.Fields(line)...)
	}
	cluster := postgrestest.NewCluster(t)
	const first, last = "sqlite:data/providerd.db", "sqlite:back/providerd.db"
	middle := cluster.CreateDatabase(t)
	var tables []string
	for _, way := range []struct{ name, from, to string }{{"there", first, middle}, {"back", middle, last}} {
		begun := time.Now()
		printed, peakKiB := copyAll(t, dir, way.from, way.to, cluster.Password)
		t.Logf("%s, %d providers were copied and compared in %.1f s, with at most %d MiB of memory",
			way.name, rows, time.Since(begun).Seconds(), peakKiB>>10)
		processtest.Expect(t, peakKiB>>10 <= maxMemory,
			"%s, the copy took %d MiB of memory, at most %d are allowed", way.name, peakKiB>>10, maxMemory)
		tables = append(tables, printed)
	}
	// The second copy has the event of the first.
	events := regexp.MustCompile(`(?m)^events +(\d+) .*$`)
	if events.ReplaceAllString(tables[0], "") != events.ReplaceAllString(tables[1], "") {
		t.Errorf("there:\n%s\nback:\n%s", tables[0], tables[1])
	}
	t.Logf("there and back:\n%s", tables[1])
	if rows == defaultRows {
		for _, url := range []string{middle, last} {
			expectCopy(t, dir, url, first)
			if pk := runOver(t, dir, url, create); pk != fmt.Sprintln(rows+2) {
				t.Errorf("the next pk is %s", pk)
			}
		}
		providerdtest.RunShell(t, dir, "mv data/keyset.json back/; rm -r data; mv back data")
		providerdtest.CheckFilled(t, dir, rows)
	}
}

// expectCopy compares everything that commands show of two databases. The copy has more events.
func expectCopy(t *testing.T, dir, url, of string) {
	for _, line := range []string{
		"provider list --output json --reveal", "token list --output json", "application list --output json",
		"audit list --output jsonl",
	} {
		want, got := runOver(t, dir, of, line), runOver(t, dir, url, line)
		processtest.Expect(t, strings.HasPrefix(got, want) && len(got) <= len(want)+1000,
			"%s: %s has %d bytes, want the %d of %s", line, url, len(got), len(want), of)
	}
}

// runOver runs a command on a database.
func runOver(t *testing.T, dir, url, line string) string {
	t.Helper()
	words := []string{"PROVIDERD_DATABASE=" + url, "PROVIDERD_KEYSET=data/keyset.json"}
	return processtest.Run(t, providerdtest.Command(t.Context(), dir, append(words, strings.Fields(line)...)...))
}

// TestCopyInterrupted interrupts or kills a copy, expects that the target has nothing, and copies again.
func TestCopyInterrupted(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	dir := t.TempDir()
	providerdtest.Fill(t, dir, rows)
	cluster := postgrestest.NewCluster(t)
	const from = "sqlite:data/providerd.db"
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			to := cluster.CreateDatabase(t)
			child, err := processtest.Start(copying(t.Context(), dir, from, to))
			processtest.Must(t, err)
			connection, err := pgx.Connect(t.Context(), to)
			processtest.Must(t, err)
			defer func() { _ = connection.Close(t.Context()) }()
			count := func(query string) (count int) {
				processtest.Must(t, connection.QueryRow(t.Context(), query).Scan(&count))
				return count
			}
			const inserting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'INSERT INTO "providers"%'`
			processtest.WaitUntil(t, "the copy inserts providers", func() bool { return count(inserting) > 0 })
			if err := child.Stop(signal); err == nil {
				t.Fatal("the copy finished before it was interrupted")
			}
			if said := child.Stderr.String(); signal != syscall.SIGKILL &&
				!strings.Contains(said, "interrupted; nothing was stored") {
				t.Errorf("interrupted, it prints %s", said)
			}
			if left := count("SELECT (SELECT count(*) FROM providers) + (SELECT count(*) FROM events)"); left != 0 {
				t.Errorf("%d rows are left", left)
			}
			processtest.WaitUntil(t, "the server has ended the transaction", func() bool { return count(inserting) == 0 })
			printed, _ := copyAll(t, dir, from, to, cluster.Password)
			processtest.Expect(t, regexp.MustCompile(fmt.Sprintf(`(?m)^providers +%d `, rows)).MatchString(printed),
				"it printed %s", printed)
			providerdtest.ExpectExit(t, copying(t.Context(), dir, from, to), providerdtest.ExitFailed, "not empty: it has been set up before")
		})
	}
}

// TestServerWaitsForCopy starts a server on a database that is being copied. It waits for the copy to end.
func TestServerWaitsForCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.Fill(t, dir, 20_000)
	cluster := postgrestest.NewCluster(t)
	to := cluster.CreateDatabase(t)
	child, err := processtest.Start(copying(t.Context(), dir, "sqlite:data/providerd.db", to))
	processtest.Must(t, err)
	const copied = "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO \"providers\"%' AND application_name = 'providerd'"
	cluster.Await(t, copied)
	id := child.Command.Process.Pid
	processtest.Must(t, syscall.Kill(id, syscall.SIGSTOP))
	command, messages := providerdtest.ServeCommand(t.Context(), dir), &processtest.Buffer{}
	command.Stderr = messages
	started := make(chan error)
	var server *providerdtest.Server
	go func() {
		var err error
		server, err = providerdtest.Start(command)
		started <- err
	}()
	const waits = "another program uses data/providerd.db; waiting up to 35s for it to stop"
	processtest.WaitUntil(t, "the server waits", func() bool { return strings.Contains(messages.String(), waits) })
	processtest.Must(t, syscall.Kill(id, syscall.SIGCONT), child.Wait(), <-started)
	server.Stop(t)
}

// TestCopyBesideOtherTables copies to a database that another program uses.
func TestCopyBesideOtherTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.Fill(t, dir, 1)
	cluster := postgrestest.NewCluster(t)
	cluster.Exec(t, "postgres", "CREATE TABLE foo (id integer)")
	providerdtest.ExpectExit(t, copying(t.Context(), dir, "sqlite:data/providerd.db", cluster.URL("postgres")), providerdtest.ExitFailed,
		`--to: not a providerd database: it has tables of another program: \["foo"\]; use another path or database`)
}
