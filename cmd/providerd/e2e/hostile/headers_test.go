//go:build slow

package hostile_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/server/contracttest"
)

// TestHostileHeaders sends as many header fields as the server accepts, and more, over many connections, without a
// token and without ending the header.
func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	server := serveLimited(t, t.TempDir())
	for _, length := range []int{8 << 10, 36 << 10} {
		holdHeaders(t, server, length)
	}
	checkPeakMemory(t, server)
}

func holdHeaders(t *testing.T, server *providerdtest.Server, length int) {
	t.Helper()
	const connections = 1000
	text := "GET / HTTP/1.1\r\nHost: example.com\r\n"
	text += strings.Repeat("a:\r\n", (length-len(text))/len("a:\r\n")-1)
	var open errgroup.Group
	open.SetLimit(100)
	held := make([]net.Conn, connections)
	for i := range held {
		open.Go(func() (err error) {
			held[i], err = new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
			if err == nil {
				// The server closes the connection at its limit.
				_, _ = held[i].Write([]byte(text))
			}
			return err
		})
	}
	if err := open.Wait(); err != nil {
		t.Fatal(err)
	}
	status := server.Send(t, contracttest.Client(t), http.MethodGet, "/healthz", "", "", nil)
	if status != http.StatusOK {
		t.Errorf("healthz: %d", status)
	}
	for _, connection := range held {
		_ = connection.Close()
	}
}
