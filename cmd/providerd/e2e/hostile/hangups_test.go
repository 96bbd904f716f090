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
)

// TestHostileHalfClosing sends creates of which the caller closes its sending half at once. It still listens, and is
// answered.
func TestHostileHalfClosing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := providerdtest.Serve(t, folder)
	statuses := map[int]int{}
	const creates = 50
	for range creates {
		statuses[halfClose(t, server, providerdtest.CreateHeader(t, folder, len(providerdtest.OAuth2Body))+"\r\n"+providerdtest.OAuth2Body)]++
	}
	if statuses[http.StatusCreated] != creates {
		t.Errorf("statuses are %v", statuses)
	}
	status := halfClose(t, server, providerdtest.CreateHeader(t, folder, len(providerdtest.OAuth2Body))+"\r\n"+providerdtest.OAuth2Body[1:])
	if status != http.StatusBadRequest {
		t.Errorf("a body that is cut off is answered %d", status)
	}
	server.MustStop(t)
	if stored := len(providerdtest.StoredPKs(t, folder)); stored != creates {
		t.Errorf("%d records are stored, want %d", stored, creates)
	}
	checkCanceled(t, server.Stderr.String(), 1)
}

// halfClose sends a request and the end of all that is sent, and returns the status of the answer.
func halfClose(t *testing.T, server *providerdtest.Server, request string) int {
	t.Helper()
	connection := providerdtest.Dial(t, server)
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer := providerdtest.PendingCreate{Conn: connection, Reader: bufio.NewReader(connection)}
	return answer.ReadResponse(t).StatusCode
}

// checkCanceled demands that at least so many requests are logged as canceled, and nothing as a fault of the server.
func checkCanceled(t *testing.T, log string, atLeast int) {
	t.Helper()
	canceled := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "storage-unavailable") {
			t.Errorf("a caller who is gone looks like a fault: %s", line)
		}
		if strings.Contains(line, "level=INFO") && strings.Contains(line, " outcome=canceled") {
			canceled++
		}
	}
	if canceled < atLeast {
		t.Errorf("%d requests are logged as canceled, want at least %d", canceled, atLeast)
	}
}

// TestHostileHangUps lets 200 callers go away, in the middle of the body, after it, and under a large answer. None is a
// fault of the server, and those who stay are served.
func TestHostileHangUps(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := providerdtest.Serve(t, folder)
	large := fmt.Sprintf(`{"name":%q,%s`, strings.Repeat("x", 500_000), providerdtest.OAuth2Body[len(`{"name":"Intranet",`):])
	client := contracttest.Client(t)
	for i := range 50 {
		for body, sent := range map[string]int{providerdtest.OAuth2Body: len(providerdtest.OAuth2Body), large: len(large), " " + providerdtest.OAuth2Body: 20} {
			hangUp(t, providerdtest.Dial(t, server), providerdtest.CreateHeader(t, folder, len(body))+"\r\n"+body[:sent], i%2 == 0)
		}
		// The server works on this create, and gets half its body.
		hangUp(t, providerdtest.BeginCreate(t, server, folder).Conn, providerdtest.OAuth2Body[:20], i%2 == 0)
		server.Create(t, client)
	}
	server.MustStop(t)
	checkCanceled(t, server.Stderr.String(), 50)
	providerdtest.CheckIntegrity(t, folder+"/data/providerd.db")
}

// hangUp sends text over a connection and closes it, with a reset or in order.
func hangUp(t *testing.T, connection net.Conn, text string, reset bool) {
	t.Helper()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	if reset {
		if err := connection.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := connection.Close(); err != nil {
		t.Fatal(err)
	}
}
