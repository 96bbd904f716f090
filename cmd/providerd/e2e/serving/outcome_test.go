package serving_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// untilReset is more creates, each in its own transaction, than the WAL takes before it is reset.
const untilReset = 600

// faultyDisk is a directory for a server whose disk calls can be made to fail.
type faultyDisk struct {
	dir         string
	environment []string
}

func newFaultyDisk(t *testing.T) *faultyDisk {
	t.Helper()
	dir := t.TempDir()
	library := filepath.Join(dir, "faults.so")
	providerdtest.Run(t, "cc", "-shared", "-fPIC", "-o", library, "testdata/faults.c")
	return &faultyDisk{dir: dir, environment: []string{"LD_PRELOAD=" + library, "FAULTS=" + dir}}
}

// fail makes a disk call fail until heal. See faults.c for the calls.
func (d *faultyDisk) fail(t *testing.T, call string) {
	t.Helper()
	processtest.Must(t, os.WriteFile(filepath.Join(d.dir, call), nil, 0o600))
}

func (d *faultyDisk) heal(t *testing.T, call string) {
	t.Helper()
	processtest.Must(t, os.Remove(filepath.Join(d.dir, call)))
}

// TestFailedCommit makes the disk fail during a commit. The response is outcome-unknown, and a retry with the same key
// resolves it to one record, whether the server continues or is killed and restarted.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"sync", "pwrite64"} {
		for next, restart := range map[string]bool{"the server continues": false, "the server is killed": true} {
			t.Run(call+" fails and "+next, func(t *testing.T) {
				t.Parallel()
				disk := newFaultyDisk(t)
				server := providerdtest.Serve(t, disk.dir, disk.environment...)
				createNamed(t, server, "before", http.StatusCreated)
				disk.fail(t, call)
				problem := createNamed(t, server, "during", http.StatusServiceUnavailable)
				if !strings.Contains(problem, `"/problems/outcome-unknown"`) {
					t.Errorf("problem is %s", problem)
				}
				if restart {
					server.Kill(t)
				}
				disk.heal(t, call)
				if restart {
					server = providerdtest.Serve(t, disk.dir, disk.environment...)
				}
				createNamed(t, server, "during", http.StatusCreated)
				createNamed(t, server, "during", http.StatusCreated)
				createNamed(t, server, "after", http.StatusCreated)
				server.Stop(t)
				if pks := providerdtest.StoredPKs(t, disk.dir); len(pks) != 3 {
					t.Errorf("stored pks are %v, want 3", pks)
				}
				providerdtest.CheckIntegrity(t, filepath.Join(disk.dir, "data", "providerd.db"))
			})
		}
	}
}

// TestFailedCheckpoint makes the disk fail for checkpoints only. Creates continue, the log reports the failed
// checkpoint, and the next one succeeds.
func TestFailedCheckpoint(t *testing.T) {
	t.Parallel()
	disk := newFaultyDisk(t)
	server := providerdtest.Serve(t, disk.dir, disk.environment...)
	client := contracttest.Client(t)
	disk.fail(t, "checkpoint")
	for range untilReset {
		server.Create(t, client)
	}
	processtest.WaitUntil(t, "the log reports the failed checkpoint", func() bool {
		return strings.Contains(server.Stderr.String(), `msg="checkpoint failed"`)
	})
	disk.heal(t, "checkpoint")
	for range untilReset {
		server.Create(t, client)
	}
	server.Stop(t)
	if stored := providerdtest.StoredPKs(t, disk.dir); len(stored) != 2*untilReset {
		t.Errorf("%d records are stored, want %d", len(stored), 2*untilReset)
	}
	providerdtest.CheckIntegrity(t, filepath.Join(disk.dir, "data", "providerd.db"))
}

// createNamed creates a provider with its name as idempotency key and returns the response, which must have the status
// want.
func createNamed(t *testing.T, server *providerdtest.Server, name string, want int) string {
	t.Helper()
	body := `{"name":"` + name + `","delegated_subject":"admin@example.com","credentials":{},"default_group_email_domain":"example.com"}`
	return server.ExpectPost(t, contracttest.Client(t), want, providerdtest.DirectoryPath, body, name)
}
