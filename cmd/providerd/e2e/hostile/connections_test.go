//go:build slow

package hostile_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

const healthRequest = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

// holdIdle opens connections without a token and keeps them until the test ends. Some send one request, as a browser
// does, some a part of one, some nothing.
func holdIdle(t *testing.T, server *providerdtest.Server, count int) {
	t.Helper()
	for i := range count {
		connection := providerdtest.Dial(t, server)
		text := []string{healthRequest, healthRequest[:20], ""}[i%3]
		_, err := io.WriteString(connection, text)
		processtest.Must(t, err)
		if text == healthRequest {
			pending := &pendingCreate{Conn: connection, reader: bufio.NewReader(connection)}
			if status := pending.readStatus(t); status != http.StatusOK {
				t.Fatalf("connection %d: status is %d", i, status)
			}
		}
	}
}

// wantHealthy sends a probe over a new connection.
func wantHealthy(t *testing.T, client *http.Client, server *providerdtest.Server) {
	t.Helper()
	started := time.Now()
	status := server.Send(t, client, http.MethodGet, "/healthz", "", "", nil)
	if status != http.StatusOK || time.Since(started) > 8*time.Second {
		t.Errorf("after %v status is %d", time.Since(started), status)
	}
}

// TestIdleConnectionsLeaveFiles opens more connections than the process may open files.
func TestIdleConnectionsLeaveFiles(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "bash", "-c",
		`ulimit -n 100; exec -a providerd "$0" serve --listen 127.0.0.1:0`, os.Args[0])
	command.Dir = t.TempDir()
	server := providerdtest.MustStart(t, command)
	holdIdle(t, server, 150)
	client := contracttest.Client(t)
	client.Timeout = 10 * time.Second
	wantHealthy(t, client, server)
	server.Kill(t)
}

// TestStalledHandshakes stalls at every point of a handshake, and after it.
func TestStalledHandshakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.WriteCertificate(t, dir, 1)
	server := providerdtest.Serve(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--max-connections", "8")
	address := strings.TrimPrefix(server.URL, "https://")
	trusting := &tls.Config{InsecureSkipVerify: true}
	for i := range 32 {
		connection, err := net.DialTimeout("tcp", address, processtest.Timeout)
		processtest.Must(t, err)
		defer func() { _ = connection.Close() }()
		switch i % 4 {
		case 1:
			_, err = io.WriteString(connection, "\x16\x03\x01\x02\x00\x01")
		case 2:
			err = tls.Client(connection, trusting).HandshakeContext(t.Context())
		case 3:
			_, err = fmt.Fprint(tls.Client(connection, trusting), healthRequest)
		}
		processtest.Must(t, err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	wantHealthy(t, client, server)
	server.Kill(t)
}

// TestHeadersTakeLittleMemory sends as many header fields as the server accepts, and more, over many connections, without a
// token and without ending the header.
func TestHeadersTakeLittleMemory(t *testing.T) {
	t.Parallel()
	server := serveShipped(t)
	for _, length := range []int{16 << 10, 36 << 10} {
		holdHeaders(t, server, strings.Repeat("a:\r\n", length/len("a:\r\n")))
	}
	var distinct strings.Builder
	for i := 0; distinct.Len() < 16<<10; i++ {
		fmt.Fprintf(&distinct, "%x:\n", i)
	}
	holdHeaders(t, server, distinct.String())
	checkPeakMemory(t, server)
}

func holdHeaders(t *testing.T, server *providerdtest.Server, fields string) {
	t.Helper()
	const connections = 1000
	text := "GET / HTTP/1.1\r\nHost: example.com\r\n" + fields
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
	processtest.Must(t, open.Wait())
	status := server.Send(t, contracttest.Client(t), http.MethodGet, "/healthz", "", "", nil)
	if status != http.StatusOK {
		t.Errorf("healthz: %d", status)
	}
	for _, connection := range held {
		_ = connection.Close()
	}
}
