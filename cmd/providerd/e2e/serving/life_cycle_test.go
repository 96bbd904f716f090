package serving_test

import (
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// TestLifeCycle checks what a service manager and a load balancer see of a server, from start to exit.
func TestLifeCycle(t *testing.T) {
	t.Parallel()
	dir, client := t.TempDir(), contracttest.Client(t)
	manager := providerdtest.ListenAsManager(t, filepath.Join(dir, "notify"))
	server := providerdtest.Serve(t, dir,
		"NOTIFY_SOCKET="+manager.LocalAddr().String(), "WATCHDOG_USEC=20000", "--drain-delay", "3s")
	providerdtest.ExpectState(t, manager, "READY=1\nSTATUS=serving on "+server.URL)
	providerdtest.ExpectState(t, manager, "WATCHDOG=1")
	if status, readiness := providerdtest.Readiness(t, server); status != http.StatusOK || readiness != "ready" {
		t.Errorf("before shutdown, /readyz is %d, %s", status, readiness)
	}
	told := time.Now()
	server.Signal(t, syscall.SIGTERM)
	providerdtest.ExpectState(t, manager, providerdtest.StateDraining(3*time.Second))
	if status, readiness := providerdtest.Readiness(t, server); status != http.StatusServiceUnavailable || readiness != "draining" {
		t.Errorf("during the drain delay, /readyz is %d, %s", status, readiness)
	}
	server.Create(t, client)
	providerdtest.ExpectState(t, manager, "WATCHDOG=1")
	providerdtest.ExpectState(t, manager, providerdtest.StateEnding)
	if delay := time.Since(told); delay < 3*time.Second {
		t.Errorf("the server drained for %v", delay)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("exit: %v: %s", err, server.Stderr)
	}
	if stored := providerdtest.StoredPKs(t, dir); len(stored) != 1 {
		t.Errorf("%d records are stored, want 1", len(stored))
	}
}
