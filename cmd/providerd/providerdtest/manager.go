package providerdtest

import (
	"fmt"
	"net"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// StateEnding is the notification that a server sends when its drain delay is over.
const StateEnding = "STATUS=finishing requests in flight"

// StateDraining returns the notification that a server sends when it receives a stop signal. It requests a minute more
// than the drain delay.
func StateDraining(delay time.Duration) string {
	return fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: not ready, still serving requests",
		(delay + time.Minute).Microseconds())
}

// ListenAsManager listens on socket for notifications of servers.
func ListenAsManager(t *testing.T, socket string) *net.UnixConn {
	t.Helper()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	processtest.Must(t, err)
	t.Cleanup(func() { _ = manager.Close() })
	return manager
}

// ExpectState reads the next notification, except pings of the watchdog, which must be want.
func ExpectState(t *testing.T, manager *net.UnixConn, want string) {
	t.Helper()
	message := make([]byte, 1024)
	for {
		length, err := manager.Read(message)
		processtest.Must(t, err)
		switch state := string(message[:length]); state {
		case want:
			return
		case "WATCHDOG=1":
		default:
			t.Fatalf("the service manager got %q, want %q", state, want)
		}
	}
}
