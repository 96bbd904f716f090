package providerdtest

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// StateEnding is what a service manager is told once the drain delay of a server is over.
const StateEnding = "STATUS=finishing requests in flight"

// StateDraining is what a service manager is told when a server is told to stop: for its end it has a minute more than
// its drain delay.
func StateDraining(delay time.Duration) string {
	return fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: not ready, still serving requests",
		(delay + time.Minute).Microseconds())
}

// ListenAsManager listens to what servers tell a service manager.
func ListenAsManager(t *testing.T, socket string) *net.UnixConn {
	t.Helper()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	return manager
}

// ExpectState reads what the service manager is told until that is a state. Pings of the watchdog may come before.
func ExpectState(t *testing.T, manager *net.UnixConn, want string) {
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
