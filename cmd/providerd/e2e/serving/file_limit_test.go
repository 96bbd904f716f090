package serving_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// fileLimit is the maximum size of the files of a server.
const fileLimit = 4 << 20

// startWithFileLimit starts a server whose files are limited.
func startWithFileLimit(t *testing.T, dir string) *providerdtest.Server {
	t.Helper()
	program := filepath.Join(t.TempDir(), "providerd")
	processtest.Must(t, os.Symlink(os.Args[0], program))
	const block = 512
	command := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(`ulimit -f %d && exec "$@"`, fileLimit/block),
		"sh", program, "serve", "--listen", "127.0.0.1:0", "--log-level", "error")
	command.Dir = dir
	return providerdtest.MustStart(t, command)
}

// TestDiskFullWAL checks that, if the WAL cannot grow, few creates are refused, replays still work, and a create
// succeeds after the server was ready or a validation passed.
func TestDiskFullWAL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startWithFileLimit(t, dir)
	client := contracttest.Client(t)
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
	const page = 4 << 10
	wal, err := os.Stat(filepath.Join(dir, "data", "providerd.db-wal"))
	if err != nil || wal.Size() < fileLimit-page {
		t.Errorf("the WAL was never full: %d bytes, %v", wal.Size(), err)
	}
	server.Stop(t)
	if stored := len(providerdtest.StoredPKs(t, dir)); stored != 1+creates-refusals {
		t.Errorf("%d are stored, %d were acknowledged", stored, 1+creates-refusals)
	}
}
