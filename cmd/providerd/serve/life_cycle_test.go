package serve_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/cmd/providerd/serve"
)

// TestWatchdogPings checks that a service manager gets two pings per interval, so that each may be half an interval
// late.
func TestWatchdogPings(t *testing.T) {
	manager := providerdtest.ListenAsManager(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "30000000")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go serve.Watch(ctx)
		<-time.After(91 * time.Second)
		cancel()
	})
	if _, err := manager.WriteTo([]byte("no more"), manager.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		providerdtest.ExpectState(t, manager, "WATCHDOG=1")
	}
}
