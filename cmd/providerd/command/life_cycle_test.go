package command

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/server/contracttest"
)

// stateEnding is what a service manager is told once the drain delay of a server is over.
const stateEnding = "STATUS=ending the requests that have begun"

// stateDraining is what a service manager is told when a server is told to stop: for its end it has a minute more than its
// drain delay.
func stateDraining(delay time.Duration) string {
	return fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: not ready, but still answering new requests",
		(delay + time.Minute).Microseconds())
}

// TestLifeCycle follows a server from its start to its end, as a service manager and a load balancer do.
func TestLifeCycle(t *testing.T) {
	t.Parallel()
	folder, client := t.TempDir(), contracttest.Client(t)
	manager := listenAsManager(t, filepath.Join(folder, "notify"))
	server := serveWith(t, folder,
		[]string{"NOTIFY_SOCKET=" + manager.LocalAddr().String(), "WATCHDOG_USEC=20000"}, "--drain-delay", "3s")
	expectState(t, manager, "READY=1\nSTATUS=serving on "+server.url)
	expectState(t, manager, "WATCHDOG=1")
	if status, readiness := readinessOf(t, server); status != http.StatusOK || readiness != "ready" {
		t.Errorf("before the end, /readyz is %d, %s", status, readiness)
	}
	told := time.Now()
	server.signal(t, syscall.SIGTERM)
	expectState(t, manager, stateDraining(3*time.Second))
	if status, readiness := readinessOf(t, server); status != http.StatusServiceUnavailable || readiness != "draining" {
		t.Errorf("in the delay, /readyz is %d, %s", status, readiness)
	}
	createOverHTTP(t, client, server, folder)
	expectState(t, manager, "WATCHDOG=1")
	expectState(t, manager, stateEnding)
	if delay := time.Since(told); delay < 3*time.Second {
		t.Errorf("the server drains for %v", delay)
	}
	if err := server.command.Wait(); err != nil {
		t.Errorf("the server ends with %v: %s", err, server.stderr)
	}
	if stored := storedPKs(t, folder); len(stored) != 1 {
		t.Errorf("%d records are stored, want 1", len(stored))
	}
}

// TestWatchdogPings counts, in a time of its own, what a service manager hears in three of the intervals that it asks
// for: each ping may then be late by half of one.
func TestWatchdogPings(t *testing.T) {
	manager := listenAsManager(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "30000000")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go serviceManager{slog.New(slog.DiscardHandler)}.watch(ctx)
		<-time.After(91 * time.Second)
		cancel()
	})
	if _, err := manager.WriteTo([]byte("no more"), manager.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		expectState(t, manager, "WATCHDOG=1")
	}
}

// listenAsManager listens to what servers tell a service manager.
func listenAsManager(t *testing.T, socket string) *net.UnixConn {
	t.Helper()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	return manager
}

// expectState reads what the service manager is told until that is a state. Pings of the watchdog may come before.
func expectState(t *testing.T, manager *net.UnixConn, want string) {
	t.Helper()
	message := make([]byte, 1024)
	for {
		length, err := manager.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		switch state := string(message[:length]); state {
		case want:
			return
		case "WATCHDOG=1":
		default:
			t.Fatalf("the service manager is told %q, want %q", state, want)
		}
	}
}

func readinessOf(t *testing.T, server *process) (status int, readiness string) {
	t.Helper()
	status, text := get(t, server.url+"/readyz")
	var body struct{ Status string }
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return status, strings.TrimSpace(body.Status)
}
