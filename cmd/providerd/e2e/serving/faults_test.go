//go:build slow

package serving_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// mount mounts something at a path until the test ends. It needs root.
func mount(t *testing.T, path string, arguments ...string) {
	t.Helper()
	processtest.NeedRoot(t)
	providerdtest.Run(t, "mount", append(arguments, path)...)
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// tally counts the outcomes of creates.
type tally struct{ acknowledged, refused int }

// createUntil sends creates of about 100 kB until one gets the status want.
func (c *tally) createUntil(t *testing.T, server *providerdtest.Server, want int) {
	t.Helper()
	client := contracttest.Client(t)
	for range 1000 {
		body := fmt.Sprintf(`{"name":%q,"delegated_subject":"admin@example.com","credentials":{},`+
			`"default_group_email_domain":"example.com"}`, strings.Repeat("x", 100_000))
		status, text, err := server.Post(client, "/api/v3/providers/workspace_directory/", body)
		switch {
		case err != nil:
			t.Fatal(err)
		case status == http.StatusCreated:
			c.acknowledged++
		case status == http.StatusServiceUnavailable && strings.Contains(text, "/problems/storage-unavailable"):
			c.refused++
		default:
			t.Fatalf("status is %d: %s", status, text)
		}
		if status == want {
			return
		}
	}
	t.Fatalf("no create got status %d", want)
}

// account stops the server and checks that exactly the acknowledged creates are stored.
func (c *tally) account(t *testing.T, server *providerdtest.Server, dir, fault string) {
	t.Helper()
	server.Stop(t)
	stored := len(providerdtest.StoredPKs(t, dir))
	t.Logf("%s: acknowledged %d, refused %d, stored but not acknowledged %d, missing %d, duplicates 0",
		fault, c.acknowledged, c.refused, max(0, stored-c.acknowledged), max(0, c.acknowledged-stored))
	if stored != c.acknowledged {
		t.Errorf("%d creates are stored", stored)
	}
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "-t", "tmpfs", "-o", "size=16m", "tmpfs")
	filler := filepath.Join(dir, "filler")
	processtest.Must(t, os.WriteFile(filler, bytes.Repeat([]byte("x"), 8<<20), 0o600))
	server := providerdtest.Serve(t, dir)
	client := contracttest.Client(t)
	send := func(query, key string, want int) {
		t.Helper()
		server.ExpectPost(t, client, want, providerdtest.OAuth2Path+query, providerdtest.OAuth2Body, key)
	}
	const validation, key = "?validate_only=true", `"replayed"`
	send("", key, http.StatusCreated)
	result := tally{acknowledged: 1}
	for range 3 {
		result.createUntil(t, server, http.StatusServiceUnavailable)
		server.ExpectReadiness(t, "unavailable")
		// A replay stores nothing, so it does not make the server ready.
		send(validation, "", http.StatusServiceUnavailable)
		send("", key, http.StatusCreated)
		server.ExpectReadiness(t, "unavailable")
	}
	processtest.Must(t, os.Remove(filler))
	// The server becomes ready again without a create.
	send(validation, "", http.StatusOK)
	server.ExpectReadiness(t, "ready")
	for range 5 {
		result.createUntil(t, server, http.StatusCreated)
	}
	result.account(t, server, dir, "disk full, then not")
}

// TestDatabaseReadOnly starts a server with a database that nobody can write to, not even root.
func TestDatabaseReadOnly(t *testing.T) {
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	var result tally
	result.createUntil(t, server, http.StatusCreated)
	server.Stop(t)
	path := filepath.Join(dir, "data", "providerd.db")
	mount(t, path, "--bind", path)
	providerdtest.Run(t, "mount", "-o", "remount,bind,ro", path)
	if _, err := providerdtest.Start(providerdtest.ServeCommand(t.Context(), dir)); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("error is %v", err)
	} else {
		t.Logf("database read-only: %v", err)
	}
}

// TestSecondServerIsRefused starts a server over a SQLite database whose server does not stop.
func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	providerdtest.ExpectExit(t, providerdtest.ServeCommand(t.Context(), dir), providerdtest.ExitFailed,
		fmt.Sprintf("^(?s:.*)providerd: lock database: process %d of .* serves data/providerd.db; stop it, or use PostgreSQL to run several servers\n", server.Command.Process.Pid))
}
