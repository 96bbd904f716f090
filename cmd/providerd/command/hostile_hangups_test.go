//go:build slow

package command

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/server/contracttest"
)

// TestHostileHalfClosing sends creates of which the caller closes its sending half at once. It still listens, and is
// answered.
func TestHostileHalfClosing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := serve(t, folder)
	statuses := map[int]int{}
	const creates = 50
	for range creates {
		statuses[halfClose(t, server, createHeader(t, folder, len(oauth2Body))+"\r\n"+oauth2Body)]++
	}
	if statuses[http.StatusCreated] != creates {
		t.Errorf("statuses are %v", statuses)
	}
	status := halfClose(t, server, createHeader(t, folder, len(oauth2Body))+"\r\n"+oauth2Body[1:])
	if status != http.StatusBadRequest {
		t.Errorf("a body that is cut off is answered %d", status)
	}
	server.end(t)
	if stored := len(storedPKs(t, folder)); stored != creates {
		t.Errorf("%d records are stored, want %d", stored, creates)
	}
	checkCanceled(t, server.stderr.String(), 1)
}

// halfClose sends a request and the end of all that is sent, and returns the status of the answer.
func halfClose(t *testing.T, server *process, request string) int {
	t.Helper()
	connection := dial(t, server)
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer := begunCreate{Conn: connection, answers: bufio.NewReader(connection)}
	return answer.answer(t).StatusCode
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
	server := serve(t, folder)
	large := fmt.Sprintf(`{"name":%q,%s`, strings.Repeat("x", 500_000), oauth2Body[len(`{"name":"Intranet",`):])
	client := contracttest.Client(t)
	for i := range 50 {
		for body, sent := range map[string]int{oauth2Body: len(oauth2Body), large: len(large), " " + oauth2Body: 20} {
			hangUp(t, dial(t, server), createHeader(t, folder, len(body))+"\r\n"+body[:sent], i%2 == 0)
		}
		// The server works on this create, and gets half its body.
		hangUp(t, beginCreate(t, server, folder).Conn, oauth2Body[:20], i%2 == 0)
		createOverHTTP(t, client, server, folder)
	}
	server.end(t)
	checkCanceled(t, server.stderr.String(), 50)
	checkIntegrity(t, folder+"/data/providerd.db")
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
