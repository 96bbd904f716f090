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
)

// smallDisk mounts a file system of its own, of this size, where the server keeps its data. It needs to be root.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	providerdtest.NeedRoot(t)
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// tally counts what became of creates.
type tally struct{ acknowledged, refused int }

// createUntil sends creates of about 100 kB until one has the status.
func (o *tally) createUntil(t *testing.T, server *providerdtest.Server, want int) {
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
			o.acknowledged++
		case status == http.StatusServiceUnavailable && strings.Contains(text, "/problems/storage-unavailable"):
			o.refused++
		default:
			t.Fatalf("status is %d: %s", status, text)
		}
		if status == want {
			return
		}
	}
	t.Fatalf("no create has the status %d", want)
}

// account stops the server and compares what was acknowledged with what is stored.
func (o *tally) account(t *testing.T, server *providerdtest.Server, folder, fault string) {
	t.Helper()
	if err := server.Stop(); err != nil {
		t.Errorf("%v: %s", err, server.Stderr)
	}
	stored := len(providerdtest.StoredPKs(t, folder))
	t.Logf("%s: acknowledged %d, refused %d, stored but not acknowledged %d, missing %d, double 0",
		fault, o.acknowledged, o.refused, max(0, stored-o.acknowledged), max(0, o.acknowledged-stored))
	if stored != o.acknowledged {
		t.Errorf("%d are stored", stored)
	}
	providerdtest.CheckIntegrity(t, filepath.Join(folder, "data", "providerd.db"))
}

func TestDiskFull(t *testing.T) {
	folder := smallDisk(t, "16m")
	filler := filepath.Join(folder, "filler")
	if err := os.WriteFile(filler, bytes.Repeat([]byte("x"), 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := providerdtest.Start(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	client := contracttest.Client(t)
	send := func(query, key string, want int) {
		t.Helper()
		status, text, err := server.PostWithKey(client, providerdtest.OAuth2Path+query, providerdtest.OAuth2Body, key)
		if err != nil || status != want {
			t.Errorf("%s: status is %d, want %d, %v: %s", query, status, want, err, text)
		}
	}
	const validation, key = "?validate_only=true", `"replayed"`
	send("", key, http.StatusCreated)
	result := tally{acknowledged: 1}
	for range 3 {
		result.createUntil(t, server, http.StatusServiceUnavailable)
		wantReady(t, server, http.StatusServiceUnavailable)
		// What stores nothing does not make the server ready.
		send(validation, "", http.StatusServiceUnavailable)
		send("", key, http.StatusCreated)
		wantReady(t, server, http.StatusServiceUnavailable)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	// No create need come for the server to be ready again.
	send(validation, "", http.StatusOK)
	wantReady(t, server, http.StatusOK)
	for range 5 {
		result.createUntil(t, server, http.StatusCreated)
	}
	result.account(t, server, folder, "disk full, then not")
}

func wantReady(t *testing.T, server *providerdtest.Server, want int) {
	t.Helper()
	response, err := contracttest.Client(t).Get(server.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != want {
		t.Errorf("readyz: status is %d, want %d, %v", response.StatusCode, want, err)
	}
}

// TestDatabaseReadOnly starts over a database that nobody can write to, root included.
func TestDatabaseReadOnly(t *testing.T) {
	folder := t.TempDir()
	server, err := providerdtest.Start(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var result tally
	result.createUntil(t, server, http.StatusCreated)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "data", "providerd.db")
	bind(t, path)
	if _, err := providerdtest.Start(t.Context(), folder); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("error is %v", err)
	} else {
		t.Logf("database read-only: %v", err)
	}
}

// bind mounts a file over itself, read-only.
func bind(t *testing.T, path string) {
	t.Helper()
	providerdtest.NeedRoot(t)
	err := syscall.Mount(path, path, "", syscall.MS_BIND, "")
	if err == nil {
		err = syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	if err != nil {
		t.Fatalf("make %s read-only: %v", path, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
