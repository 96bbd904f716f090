package serving_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestDiskFullWAL checks that, if the WAL cannot grow, few creates are refused, replays still work, and a create
// succeeds after the server was ready or a validation passed.
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
		if err != nil || !slices.Contains(want, status) {
			t.Fatalf("status is %d, want one of %d, %v: %s", status, want, err, text)
		}
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
	if refusals > mostRefused {
		t.Errorf("%d of %d creates were refused, want at most %d", refusals, creates, mostRefused)
	}
	wal, err := os.Stat(filepath.Join(dir, "data", "providerd.db-wal"))
	if err != nil || wal.Size() < fileLimit-page {
		t.Errorf("the WAL was never full: %d bytes, %v", wal.Size(), err)
	}
	server.Stop(t)
	if stored := len(providerdtest.StoredPKs(t, dir)); stored != 1+creates-refusals {
		t.Errorf("%d are stored, %d were acknowledged", stored, 1+creates-refusals)
	}
}

// withFaults returns a directory for a server, and the environment with which a disk call of the server fails while
// the directory has a file of its name. See faults.c for the calls.
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
				problem := create("during", http.StatusServiceUnavailable)
				if !strings.Contains(problem, `"/problems/outcome-unknown"`) {
					t.Errorf("problem is %s", problem)
				}
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
				if pks := providerdtest.StoredPKs(t, dir); len(pks) != 3 {
					t.Errorf("stored pks are %v, want 3", pks)
				}
				providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
			})
		}
	}
}

// untilReset is more creates, each in its own transaction, than the WAL takes before it is reset.
const untilReset = 600

// TestFailedCheckpoint makes the disk fail for checkpoints only. Creates continue, the log reports the failed
// checkpoint, and the next one succeeds.
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
	if stored := providerdtest.StoredPKs(t, dir); len(stored) != 2*untilReset {
		t.Errorf("%d records are stored, want %d", len(stored), 2*untilReset)
	}
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}
