//go:build slow

package hostile_test

import (
	"crypto/tls"
	"errors"
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

func wantHealthy(t *testing.T, client *http.Client, server *providerdtest.Server) {
	t.Helper()
	client.Timeout = 10 * time.Second
	started := time.Now()
	status := server.Send(t, client, http.MethodGet, "/healthz", "", "", nil)
	processtest.Expect(t, status == http.StatusOK && time.Since(started) <= 8*time.Second, "status is %d", status)
}

// TestIdleConnectionsLeaveFiles opens more connections than files may be open, without a token, most of them idle.
func TestIdleConnectionsLeaveFiles(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "bash", "-c",
		`ulimit -n 100; exec -a providerd "$0" serve --listen 127.0.0.1:0`, os.Args[0])
	command.Dir = t.TempDir()
	server := providerdtest.MustStart(t, command)
	for i := range 150 {
		connection := providerdtest.Dial(t, server)
		switch i % 3 {
		case 0:
			expectStatus(t, connection, healthRequest, http.StatusOK)
		case 1:
			processtest.Try(io.WriteString(connection, healthRequest[:20])).Must(t)
		}
	}
	wantHealthy(t, contracttest.Client(t), server)
	server.Kill(t)
}

// TestIdleProxiesAreKept leaves connections of a trusted proxy and of another client idle. When the server closes the
// connection of the client, the connection of the proxy has been idle for longer.
func TestIdleProxiesAreKept(t *testing.T) {
	t.Parallel()
	proxy := providerdtest.Dial(t, providerdtest.Serve(t, t.TempDir(), "--trusted-proxy", "127.0.0.0/8"))
	expectStatus(t, proxy, healthRequest, http.StatusOK)
	client := providerdtest.Dial(t, providerdtest.Serve(t, t.TempDir()))
	expectStatus(t, client, healthRequest, http.StatusOK)
	_, err := client.Read(make([]byte, 1))
	processtest.Expect(t, errors.Is(err, io.EOF), "the idle connection of the client: %v, want EOF", err)
	expectStatus(t, proxy, healthRequest, http.StatusOK)
}

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
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting}}
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
	processtest.Equal(t, status, http.StatusOK, "status of healthz")
	for _, connection := range held {
		_ = connection.Close()
	}
}

// TestHalfClosedConnections closes the sending side right after each create. The client must still get responses.
func TestHalfClosedConnections(t *testing.T) {
	t.Parallel()
	server := providerdtest.Serve(t, t.TempDir())
	const body, creates = providerdtest.OAuth2Body, 50
	header := createHeader(providerdtest.OAuth2Path, providerdtest.Token(t, server.Dir), len(body)) + "\r\n"
	for range creates {
		processtest.Equal(t, halfClose(t, server, header+body), http.StatusCreated, "status")
	}
	processtest.Equal(t, halfClose(t, server, header+body[1:]), http.StatusBadRequest, "status of a truncated body")
	server.Stop(t)
	processtest.Equal(t, len(providerdtest.StoredPKs(t, server.Dir)), creates, "stored records")
	checkCanceled(t, server.Stderr.String(), 1)
}

func halfClose(t *testing.T, server *providerdtest.Server, request string) int {
	t.Helper()
	connection := providerdtest.Dial(t, server)
	processtest.Try(io.WriteString(connection, request)).Must(t)
	processtest.Must(t, connection.(*net.TCPConn).CloseWrite())
	return readStatus(t, connection)
}

// checkCanceled checks that at least this many requests are logged as canceled, and none as a server error.
func checkCanceled(t *testing.T, log string, atLeast int) {
	t.Helper()
	canceled := 0
	for line := range strings.Lines(log) {
		processtest.Expect(t, !strings.Contains(line, "level=ERROR") && !strings.Contains(line, "storage-unavailable"),
			"a disconnected client is logged as an error: %s", line)
		if strings.Contains(line, "level=INFO") && strings.Contains(line, " outcome=canceled") {
			canceled++
		}
	}
	processtest.Expect(t, canceled >= atLeast, "%d requests are logged as canceled, want at least %d", canceled, atLeast)
}

// TestDisconnectedCallers disconnects 200 clients during the body, after it, and during a large response.
func TestDisconnectedCallers(t *testing.T) {
	t.Parallel()
	server := providerdtest.Serve(t, t.TempDir())
	const body = providerdtest.OAuth2Body
	large := strings.Replace(body, "Intranet", strings.Repeat("x", 500_000), 1)
	client, token := contracttest.Client(t), providerdtest.Token(t, server.Dir)
	for i := range 50 {
		for body, sent := range map[string]int{body: len(body), large: len(large), " " + body: 20} {
			header := createHeader(providerdtest.OAuth2Path, token, len(body)) + "\r\n"
			hangUp(t, providerdtest.Dial(t, server), header+body[:sent], i%2 == 0)
		}
		// The server is reading this body, and gets half of it.
		hangUp(t, beginCreate(t, server), body[:20], i%2 == 0)
		server.Create(t, client)
	}
	server.Stop(t)
	checkCanceled(t, server.Stderr.String(), 50)
	providerdtest.CheckIntegrity(t, server.Dir+"/data/providerd.db")
}

func hangUp(t *testing.T, connection net.Conn, text string, reset bool) {
	t.Helper()
	processtest.Try(io.WriteString(connection, text)).Must(t)
	if reset {
		processtest.Must(t, connection.(*net.TCPConn).SetLinger(0))
	}
	processtest.Must(t, connection.Close())
}
