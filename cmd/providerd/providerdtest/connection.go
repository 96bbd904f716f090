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

	"example.com/providerd/store/storetest/processtest"
)

// PendingCreate is a create in flight whose body has not been sent.
type PendingCreate struct {
	net.Conn
	Reader *bufio.Reader
}

// BeginCreate sends the header of a create, and waits until the server requests the body.
func BeginCreate(t *testing.T, server *Server, dir string) *PendingCreate {
	t.Helper()
	connection := Dial(t, server)
	text := CreateHeader(t, dir, len(OAuth2Body)) + "Expect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	pending := &PendingCreate{Conn: connection, Reader: bufio.NewReader(connection)}
	if response := pending.ReadResponse(t); response.StatusCode != http.StatusContinue {
		t.Fatalf("status is %d", response.StatusCode)
	}
	return pending
}

// ReadResponse reads the next response to its end.
func (p *PendingCreate) ReadResponse(t *testing.T) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(p.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response
}

// Finish sends the body. The response must be 201.
func (p *PendingCreate) Finish(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p, OAuth2Body); err != nil {
		t.Fatal(err)
	}
	if response := p.ReadResponse(t); response.StatusCode != http.StatusCreated {
		t.Errorf("status is %d", response.StatusCode)
	}
}

// Dial connects to the server until the test ends, with a deadline after processtest.Timeout.
func Dial(t *testing.T, server *Server) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(processtest.Timeout)); err != nil {
		t.Fatal(err)
	}
	return connection
}

// CreateHeader returns the header of a create with the initial token. More fields can be appended.
func CreateHeader(t *testing.T, dir string, length int) string {
	t.Helper()
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n", OAuth2Path, Token(t, dir), length)
}
