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

// TestLifeCycle follows a server from its start to its end, as a service manager and a load balancer do.
func TestLifeCycle(t *testing.T) {
	t.Parallel()
	folder, client := t.TempDir(), contracttest.Client(t)
	manager := providerdtest.ListenAsManager(t, filepath.Join(folder, "notify"))
	server := providerdtest.ServeWith(t, folder,
		[]string{"NOTIFY_SOCKET=" + manager.LocalAddr().String(), "WATCHDOG_USEC=20000"}, "--drain-delay", "3s")
	providerdtest.ExpectState(t, manager, "READY=1\nSTATUS=serving on "+server.URL)
	providerdtest.ExpectState(t, manager, "WATCHDOG=1")
	if status, readiness := providerdtest.Readiness(t, server); status != http.StatusOK || readiness != "ready" {
		t.Errorf("before the end, /readyz is %d, %s", status, readiness)
	}
	told := time.Now()
	server.Signal(t, syscall.SIGTERM)
	providerdtest.ExpectState(t, manager, providerdtest.StateDraining(3*time.Second))
	if status, readiness := providerdtest.Readiness(t, server); status != http.StatusServiceUnavailable || readiness != "draining" {
		t.Errorf("in the delay, /readyz is %d, %s", status, readiness)
	}
	server.Create(t, client)
	providerdtest.ExpectState(t, manager, "WATCHDOG=1")
	providerdtest.ExpectState(t, manager, providerdtest.StateEnding)
	if delay := time.Since(told); delay < 3*time.Second {
		t.Errorf("the server drains for %v", delay)
	}
	if err := server.Command.Wait(); err != nil {
		t.Errorf("the server ends with %v: %s", err, server.Stderr)
	}
	if stored := providerdtest.StoredPKs(t, folder); len(stored) != 1 {
		t.Errorf("%d records are stored, want 1", len(stored))
	}
}
