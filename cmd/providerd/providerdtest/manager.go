package providerdtest

import (
	"net"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// ListenAsManager listens on socket for notifications of servers.
func ListenAsManager(t *testing.T, socket string) *net.UnixConn {
	t.Helper()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	processtest.Must(t, err)
	t.Cleanup(func() { _ = manager.Close() })
	return manager
}
