//go:build slow

package hostile_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestHalfClosedConnections sends creates and closes the sending side of the connection at once. The client must still get
// responses.
func TestHalfClosedConnections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	statuses := map[int]int{}
	const creates = 50
	for range creates {
		statuses[halfClose(t, server, createHeader(t, dir, len(providerdtest.OAuth2Body))+"\r\n"+providerdtest.OAuth2Body)]++
	}
	if statuses[http.StatusCreated] != creates {
		t.Errorf("statuses are %v", statuses)
	}
	status := halfClose(t, server, createHeader(t, dir, len(providerdtest.OAuth2Body))+"\r\n"+providerdtest.OAuth2Body[1:])
	if status != http.StatusBadRequest {
		t.Errorf("status of a truncated body is %d", status)
	}
	server.Stop(t)
	if stored := len(providerdtest.StoredPKs(t, dir)); stored != creates {
		t.Errorf("%d records are stored, want %d", stored, creates)
	}
	checkCanceled(t, server.Stderr.String(), 1)
}

// halfClose sends a request, closes the sending side, and returns the status of the response.
func halfClose(t *testing.T, server *providerdtest.Server, request string) int {
	t.Helper()
	connection := providerdtest.Dial(t, server)
	_, err := io.WriteString(connection, request)
	processtest.Must(t, err)
	processtest.Must(t, connection.(*net.TCPConn).CloseWrite())
	pending := pendingCreate{Conn: connection, reader: bufio.NewReader(connection)}
	return pending.readStatus(t)
}

// checkCanceled checks that at least this many requests are logged as canceled, and none as a server error.
func checkCanceled(t *testing.T, log string, atLeast int) {
	t.Helper()
	canceled := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "storage-unavailable") {
			t.Errorf("a disconnected client is logged as an error: %s", line)
		}
		if strings.Contains(line, "level=INFO") && strings.Contains(line, " outcome=canceled") {
			canceled++
		}
	}
	if canceled < atLeast {
		t.Errorf("%d requests are logged as canceled, want at least %d", canceled, atLeast)
	}
}

// TestDisconnectedCallers disconnects 200 clients during the body, after it, and during a large response. None of them may
// cause a server error, and the remaining clients must be served.
func TestDisconnectedCallers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	large := fmt.Sprintf(`{"name":%q,%s`, strings.Repeat("x", 500_000), providerdtest.OAuth2Body[len(`{"name":"Intranet",`):])
	client := contracttest.Client(t)
	for i := range 50 {
		for body, sent := range map[string]int{providerdtest.OAuth2Body: len(providerdtest.OAuth2Body), large: len(large), " " + providerdtest.OAuth2Body: 20} {
			hangUp(t, providerdtest.Dial(t, server), createHeader(t, dir, len(body))+"\r\n"+body[:sent], i%2 == 0)
		}
		// The server is reading this body, and gets half of it.
		hangUp(t, beginCreate(t, server, dir).Conn, providerdtest.OAuth2Body[:20], i%2 == 0)
		server.Create(t, client)
	}
	server.Stop(t)
	checkCanceled(t, server.Stderr.String(), 50)
	providerdtest.CheckIntegrity(t, dir+"/data/providerd.db")
}

// hangUp sends text over a connection and closes it, with a reset or orderly.
func hangUp(t *testing.T, connection net.Conn, text string, reset bool) {
	t.Helper()
	_, err := io.WriteString(connection, text)
	processtest.Must(t, err)
	if reset {
		processtest.Must(t, connection.(*net.TCPConn).SetLinger(0))
	}
	processtest.Must(t, connection.Close())
}
