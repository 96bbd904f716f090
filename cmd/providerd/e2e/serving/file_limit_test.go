package serving_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// startWithFileLimit starts a server none of whose files can exceed 4 MiB.
func startWithFileLimit(t *testing.T, folder string) *providerdtest.Server {
	t.Helper()
	program := filepath.Join(t.TempDir(), "providerd")
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	// The unit is 512 bytes.
	command := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 8192 && exec "$@"`,
		"sh", program, "serve", "--listen", "127.0.0.1:0", "--log-level", "error")
	command.Dir = folder
	return providerdtest.ServeCommand(t, command)
}

// If the WAL cannot grow, a create is refused now and then, and the next one finds room again. Records are replayed
// meanwhile. When the server is ready or a validation passes, the next create succeeds.
func TestDiskFullOfTheWAL(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := startWithFileLimit(t, folder)
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
	var isPromised bool
	for range creates {
		if send("", "", created, refused) == created {
			isPromised = false
			continue
		}
		if refusals++; isPromised {
			t.Fatal("a create is refused by a server that was ready")
		}
		send("", `"first"`, created)
		isPromised = send("?validate_only=true", "", validated, refused) == validated ||
			server.Send(t, client, http.MethodGet, "/readyz", "", "", nil) == http.StatusOK
	}
	if refusals == 0 || refusals > mostRefused {
		t.Errorf("%d of %d creates are refused, want 1 to %d", refusals, creates, mostRefused)
	}
	server.MustStop(t)
	if stored := len(providerdtest.StoredPKs(t, folder)); stored != 1+creates-refusals {
		t.Errorf("%d are stored, %d were acknowledged", stored, 1+creates-refusals)
	}
}
