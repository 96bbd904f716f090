//go:build slow

package commands_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// machines run a replica each, over one PostgreSQL database. Each has its own keyset file.
type machines struct {
	replicas []*providerdtest.Server
	client   *http.Client
	url      string
}

// keysetOnMachine is the path of the keyset file on each machine.
const keysetOnMachine = "data/keyset.json"

func startMachines(t *testing.T) *machines {
	t.Helper()
	const count = 3
	m := &machines{client: contracttest.Client(t), url: postgrestest.NewCluster(t).CreateDatabase(t)}
	first := t.TempDir()
	providerdtest.RunShell(t, first, "mkdir --mode=700 data; providerd key create --keyset "+keysetOnMachine)
	for dir := first; len(m.replicas) < count; dir = newDirWithKeyset(t, filepath.Join(first, keysetOnMachine)) {
		m.replicas = append(m.replicas, providerdtest.MustStart(t, providerdtest.ServeCommand(t.Context(), dir, m.environment()...)))
	}
	token, err := m.command(t.Context(), "token", "create", "--name", "ci", "--allow", "providers_oauth2_create").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, replica := range m.replicas {
		if err := os.WriteFile(filepath.Join(replica.Dir, "data", "initial-token"), token, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *machines) environment() []string {
	return []string{"PROVIDERD_DATABASE=" + m.url, "PROVIDERD_KEYSET=" + keysetOnMachine}
}

// command returns a command on the first machine.
func (m *machines) command(ctx context.Context, arguments ...string) *exec.Cmd {
	return providerdtest.Command(ctx, m.replicas[0].Dir, append(m.environment(), arguments...)...)
}

func (m *machines) run(t *testing.T, arguments ...string) {
	t.Helper()
	processtest.Run(t, m.command(t.Context(), arguments...))
}

// distribute replaces the keyset files of other machines and, at last, of the first by a file on the first.
func (m *machines) distribute(t *testing.T, file string, others ...int) {
	t.Helper()
	for _, number := range others {
		dir := m.replicas[number].Dir
		providerdtest.Run(t, "cp", "--preserve=mode", filepath.Join(m.replicas[0].Dir, file), filepath.Join(dir, file))
		rename(t, filepath.Join(dir, file), filepath.Join(dir, keysetOnMachine))
	}
	rename(t, filepath.Join(m.replicas[0].Dir, file), filepath.Join(m.replicas[0].Dir, keysetOnMachine))
}

// TestMasterKeyIsReplacedUnderLoad replaces the master key of three replicas, each with a keyset file of its own. No
// create is refused.
func TestMasterKeyIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	const replacements, creates = 3, 100
	m, journal := startMachines(t), providerdtest.NewJournal()
	load := journal.Load(2*len(m.replicas), "load", func(name string) (providerdtest.Record, error) {
		caller := strings.Split(name, "-")[1]
		return m.replicas[int(caller[0])%len(m.replicas)].CreateOnce(m.client, name)
	})
	defer load.Stop()
	used := map[string]bool{m.masterKeyInUse(t): true}
	for range replacements {
		m.run(t, "key", "create", "--keyset", "data/both.json", "--add", keysetOnMachine)
		m.distribute(t, "data/both.json", 1, 2)
		journal.WaitForMore(t, creates)
		m.run(t, "key", "rewrap")
		journal.WaitForMore(t, creates)
		m.run(t, "key", "create", "--keyset", "data/new.json", "--drop", keysetOnMachine)
		m.distribute(t, "data/new.json", 1, 2)
		for number, replica := range m.replicas {
			if status, readiness := providerdtest.Readiness(t, replica); status != http.StatusOK {
				t.Errorf("readiness of replica %d is %d %s", number, status, readiness)
			}
		}
		journal.WaitForMore(t, creates)
		used[m.masterKeyInUse(t)] = true
	}
	load.Stop()
	if len(used) != replacements+1 {
		t.Errorf("the master keys were %v, want %d", used, replacements+1)
	}
	journal.Compare(t, providerdtest.StoredAt(t, m.url, filepath.Join(m.replicas[2].Dir, keysetOnMachine)))
}

// masterKeyInUse returns the id of the master key that encrypts the data keys.
func (m *machines) masterKeyInUse(t *testing.T) (id string) {
	t.Helper()
	listed, err := m.command(t.Context(), "key", "list").Output()
	match := regexp.MustCompile(`(?m)^master +(\d+) +yes$`).FindSubmatch(listed)
	if err != nil || match == nil {
		t.Fatalf("%v: %s", err, listed)
	}
	return string(match[1])
}

// A replica whose keyset file lacks the master key refuses creates, until it gets the file.
func TestReplicaWithoutMasterKey(t *testing.T) {
	t.Parallel()
	m, sent := startMachines(t), 0
	expect := func(want ...int) {
		t.Helper()
		for number, replica := range m.replicas {
			for range 2 {
				sent++
				status, _, err := replica.CreateNamed(m.client, fmt.Sprint("create-", sent), "")
				if err != nil || status != want[number] {
					t.Errorf("create at replica %d: status is %d, want %d, %v", number, status, want[number], err)
				}
			}
		}
	}
	const created, refused = http.StatusCreated, http.StatusServiceUnavailable
	expect(created, created, created)
	m.run(t, "key", "create", "--keyset", "data/both.json", "--add", keysetOnMachine)
	m.distribute(t, "data/both.json", 1)
	m.run(t, "key", "rewrap")
	expect(created, created, refused)
	last, want := m.replicas[2], "it lacks master key "+m.masterKeyInUse(t)+","
	if status, readiness := providerdtest.Get(t, last.URL+"/readyz"); status != refused {
		t.Errorf("readiness is %d %s", status, readiness)
	}
	processtest.WaitUntil(t, "the log says that "+want, func() bool { return strings.Contains(last.Stderr.String(), want) })
	providerdtest.Run(t, "cp", "--preserve=mode", filepath.Join(m.replicas[0].Dir, keysetOnMachine), filepath.Join(last.Dir, "next"))
	rename(t, filepath.Join(last.Dir, "next"), filepath.Join(last.Dir, keysetOnMachine))
	expect(created, created, created)
}
