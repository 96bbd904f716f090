package providerdtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// PendingCreate is a create that the server works on, and that waits for its body.
type PendingCreate struct {
	net.Conn
	Reader *bufio.Reader
}

// BeginCreate sends the header of a create, and waits until the server asks for the body.
func BeginCreate(t *testing.T, server *Server, folder string) *PendingCreate {
	t.Helper()
	connection := Dial(t, server)
	text := CreateHeader(t, folder, len(OAuth2Body)) + "Expect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	begun := &PendingCreate{Conn: connection, Reader: bufio.NewReader(connection)}
	if response := begun.ReadResponse(t); response.StatusCode != http.StatusContinue {
		t.Fatalf("status is %d", response.StatusCode)
	}
	return begun
}

// ReadResponse reads the next answer to the end.
func (b *PendingCreate) ReadResponse(t *testing.T) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(b.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response
}

// Finish sends the body, which must be answered with the record.
func (b *PendingCreate) Finish(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(b, OAuth2Body); err != nil {
		t.Fatal(err)
	}
	if response := b.ReadResponse(t); response.StatusCode != http.StatusCreated {
		t.Errorf("status is %d", response.StatusCode)
	}
}

// Dial connects to the server, for as long as the test runs and at most ReadyTimeout.
func Dial(t *testing.T, server *Server) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(ReadyTimeout)); err != nil {
		t.Fatal(err)
	}
	return connection
}

// CreateHeader is the header of a create with the token in the file initial-token, ready for more fields.
func CreateHeader(t *testing.T, folder string, length int) string {
	t.Helper()
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n", OAuth2Path, Token(t, folder), length)
}
