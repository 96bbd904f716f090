package serving_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestDiskFullWAL lets the WAL fill up: few creates are refused, replays work, and creates succeed after readiness.
func TestDiskFullWAL(t *testing.T) {
	t.Parallel()
	const fileLimit, block, page = 4 << 20, 512, 4 << 10
	dir, client, program := t.TempDir(), contracttest.Client(t), filepath.Join(t.TempDir(), "providerd")
	processtest.Must(t, os.Symlink(os.Args[0], program))
	command := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(`ulimit -f %d && exec "$@"`, fileLimit/block),
		"sh", program, "serve", "--listen", "127.0.0.1:0", "--log-level", "error")
	command.Dir = dir
	server := providerdtest.MustStart(t, command)
	send := func(query, key string, want ...int) int {
		t.Helper()
		status, text, err := server.PostWithKey(client, providerdtest.OAuth2Path+query, providerdtest.OAuth2Body, key)
		processtest.Require(t, err == nil && slices.Contains(want, status),
			"status %d, want %d, %v: %s", status, want, err, text)
		return status
	}
	const created, validated, refused = http.StatusCreated, http.StatusOK, http.StatusServiceUnavailable
	send("", `"first"`, created)
	const creates, mostRefused = 1000, 10
	var refusals int
	var wasReady bool
	for range creates {
		if send("", "", created, refused) == created {
			wasReady = false
			continue
		}
		if refusals++; wasReady {
			t.Fatal("a ready server refused a create")
		}
		send("", `"first"`, created)
		wasReady = send("?validate_only=true", "", validated, refused) == validated ||
			server.Send(t, client, http.MethodGet, "/readyz", "", "", nil) == http.StatusOK
	}
	processtest.Expect(t, refusals <= mostRefused, "%d of %d creates were refused", refusals, creates)
	wal, err := os.Stat(filepath.Join(dir, "data", "providerd.db-wal"))
	processtest.Expect(t, err == nil && wal.Size() >= fileLimit-page, "the WAL was never full: %v, %v", wal, err)
	server.Stop(t)
	processtest.Equal(t, len(providerdtest.StoredPKs(t, dir)), 1+creates-refusals, "stored records")
}

// withFaults returns a server's directory, and the environment in which a file named after a disk call makes it fail.
func withFaults(t *testing.T) (dir string, environment []string) {
	t.Helper()
	dir = t.TempDir()
	library := filepath.Join(dir, "faults.so")
	providerdtest.Run(t, "cc", "-shared", "-fPIC", "-o", library, "testdata/faults.c")
	return dir, []string{"LD_PRELOAD=" + library, "FAULTS=" + dir}
}

// TestFailedCommit makes the disk fail during a commit. The response is outcome-unknown, and a retry with the same key
// resolves it to one record, whether the server continues or is killed and restarted.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"sync", "pwrite64"} {
		for next, restart := range map[string]bool{"the server continues": false, "the server is killed": true} {
			t.Run(call+" fails and "+next, func(t *testing.T) {
				t.Parallel()
				dir, environment := withFaults(t)
				server := providerdtest.Serve(t, dir, environment...)
				create := func(name string, want int) string {
					t.Helper()
					body := `{"name":"` + name + `","delegated_subject":"admin@example.com","credentials":{},"default_group_email_domain":"example.com"}`
					return server.ExpectPost(t, contracttest.Client(t), want, providerdtest.DirectoryPath, body, name)
				}
				create("before", http.StatusCreated)
				processtest.Must(t, os.WriteFile(filepath.Join(dir, call), nil, 0o600))
				processtest.Contains(t, create("during", http.StatusServiceUnavailable), `"/problems/outcome-unknown"`)
				if restart {
					server.Kill(t)
				}
				processtest.Must(t, os.Remove(filepath.Join(dir, call)))
				if restart {
					server = providerdtest.Serve(t, dir, environment...)
				}
				create("during", http.StatusCreated)
				create("during", http.StatusCreated)
				create("after", http.StatusCreated)
				server.Stop(t)
				processtest.Equal(t, len(providerdtest.StoredPKs(t, dir)), 3, "stored records")
				providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
			})
		}
	}
}

// untilReset is more creates, each in its own transaction, than the WAL takes before it is reset.
const untilReset = 600

// TestFailedCheckpoint lets checkpoints fail. Creates continue, the log reports it, and the next checkpoint succeeds.
func TestFailedCheckpoint(t *testing.T) {
	t.Parallel()
	dir, environment := withFaults(t)
	server, client := providerdtest.Serve(t, dir, environment...), contracttest.Client(t)
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "checkpoint"), nil, 0o600))
	for range untilReset {
		server.Create(t, client)
	}
	processtest.WaitUntil(t, "the log reports the failed checkpoint", func() bool {
		return strings.Contains(server.Stderr.String(), `msg="checkpoint failed"`)
	})
	processtest.Must(t, os.Remove(filepath.Join(dir, "checkpoint")))
	for range untilReset {
		server.Create(t, client)
	}
	server.Stop(t)
	processtest.Equal(t, len(providerdtest.StoredPKs(t, dir)), 2*untilReset, "stored records")
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}

// defaultKillRounds is the size of these tests. The proof "faults" runs more rounds.
const defaultKillRounds = 3

// TestKilledUnderLoad repeatedly kills the program under load, which leaves each caller with one create without a
// response. Every acknowledged create must be stored once, and a retry with its key must return the same record.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const workers, minAcknowledged = 16, 200
	dir, client, all, settled := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal(), 0
	rounds := processtest.ProofSize(t, "faults", defaultKillRounds)
	for round := range rounds {
		server, sent := providerdtest.Serve(t, dir), providerdtest.NewJournal()
		load := sent.Load(workers, fmt.Sprint(round), func(name string) (providerdtest.Record, error) {
			return server.CreateOnce(client, name)
		})
		sent.WaitForMore(t, minAcknowledged+rand.IntN(minAcknowledged))
		server.Kill(t)
		load.Stop()
		settled += len(providerdtest.StoredPKs(t, dir)) - len(all.Creates) - len(sent.Creates)

		again := providerdtest.Serve(t, dir)
		for name := range sent.Failures {
			record, err := again.CreateOnce(client, name)
			processtest.CheckAs(t, err, "retry of %s", name)
			sent.Creates[name] = record
		}
		for name, record := range sent.Creates {
			repeated, err := again.CreateOnce(client, name)
			processtest.Expect(t, err == nil && repeated == record, "%s: %v, %v, want %v", name, repeated, err, record)
		}
		again.Stop(t)
		maps.Copy(all.Creates, sent.Creates)
	}
	t.Logf("%d kills, stored but not acknowledged %d", rounds, settled)
	all.Compare(t, providerdtest.Stored(t, dir))
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}

// TestServersTakeTurns starts a server over a SQLite database in use. It waits for the other to end; commands do not.
func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	server, client := providerdtest.Serve(t, t.TempDir()), contracttest.Client(t)
	for round := range processtest.ProofSize(t, "faults", defaultKillRounds) {
		command := providerdtest.Command(t.Context(), server.Dir, "serve", "--listen", "127.0.0.1:0")
		messages := &processtest.Buffer{}
		command.Stderr = messages
		manager := providerdtest.ListenAsManager(t, filepath.Join(server.Dir, fmt.Sprint("notify", round)))
		command.Env = append(command.Environ(), "NOTIFY_SOCKET="+manager.LocalAddr().String())
		var next *providerdtest.Server
		started := make(chan error)
		go func() {
			var err error
			next, err = providerdtest.Start(command)
			started <- err
		}()
		waits := regexp.MustCompile(fmt.Sprintf("process %d of .* serves data/providerd.db; waiting up to 35s", server.Command.Process.Pid))
		processtest.WaitUntil(t, "the second server waits", func() bool { return waits.MatchString(messages.String()) })
		expectState(t, manager, "EXTEND_TIMEOUT_USEC=65000000\nSTATUS=waiting for another server to stop")
		server.Create(t, client)
		processtest.Equal(t, len(providerdtest.StoredPKs(t, server.Dir)), round+1, "stored records")
		if round%2 == 0 {
			server.Kill(t)
		} else {
			server.Stop(t)
		}
		if err := <-started; err != nil {
			t.Fatalf("%v: %s", err, messages)
		}
		expectState(t, manager, "READY=1\nSTATUS=serving on "+next.URL)
		server = next
		server.Stderr = messages
	}
	server.Stop(t)
	providerdtest.CheckIntegrity(t, filepath.Join(server.Dir, "data", "providerd.db"))
}
