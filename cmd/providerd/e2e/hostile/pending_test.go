package hostile_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// pendingCreate is a create in flight whose body has not been sent.
type pendingCreate struct {
	net.Conn
	reader *bufio.Reader
}

// beginCreate sends the header of a create, and waits until the server requests the body.
func beginCreate(t *testing.T, server *providerdtest.Server, dir string) *pendingCreate {
	t.Helper()
	connection := providerdtest.Dial(t, server)
	text := createHeader(t, dir, len(providerdtest.OAuth2Body)) + "Expect: 100-continue\r\n\r\n"
	_, err := io.WriteString(connection, text)
	processtest.Must(t, err)
	pending := &pendingCreate{Conn: connection, reader: bufio.NewReader(connection)}
	if status := pending.readStatus(t); status != http.StatusContinue {
		t.Fatalf("status is %d", status)
	}
	return pending
}

// readStatus reads the next response to its end.
func (p *pendingCreate) readStatus(t *testing.T) int {
	t.Helper()
	response, err := http.ReadResponse(p.reader, nil)
	processtest.Must(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	processtest.Must(t, err)
	_ = response.Body.Close()
	return response.StatusCode
}

// finish sends the body. The response must be 201.
func (p *pendingCreate) finish(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(p, providerdtest.OAuth2Body)
	processtest.Must(t, err)
	if status := p.readStatus(t); status != http.StatusCreated {
		t.Errorf("status is %d", status)
	}
}

// createHeader returns the header of a create with the initial token. More fields can be appended.
func createHeader(t *testing.T, dir string, length int) string {
	t.Helper()
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n", providerdtest.OAuth2Path, providerdtest.Token(t, dir), length)
}
