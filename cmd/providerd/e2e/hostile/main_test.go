// Package hostile_test exposes a server and the commands to hostile clients, files, outputs and servers, and measures
// the memory that they take. Package server tests how handlers respond to hostile bodies.
//
// Start with bodies_test.go.
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

func TestMain(m *testing.M) { providerdtest.Main(m) }

func createHeader(path, token string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n", path, token, length)
}

// beginCreate sends the header of a create, and waits until the server requests the body.
func beginCreate(t *testing.T, server *providerdtest.Server) net.Conn {
	t.Helper()
	connection := providerdtest.Dial(t, server)
	header := createHeader(providerdtest.OAuth2Path, providerdtest.Token(t, server.Dir), len(providerdtest.OAuth2Body))
	expectStatus(t, connection, header+"Expect: 100-continue\r\n\r\n", http.StatusContinue)
	return connection
}

func expectStatus(t *testing.T, connection net.Conn, text string, want int) {
	t.Helper()
	processtest.Try(io.WriteString(connection, text)).Must(t)
	status := readStatus(t, connection)
	processtest.Require(t, status == want, "status is %d, want %d", status, want)
}

// readStatus reads a response to its end. No other may follow at once.
func readStatus(t *testing.T, connection net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	processtest.Must(t, err)
	processtest.Try(io.Copy(io.Discard, response.Body)).Must(t)
	return response.StatusCode
}
