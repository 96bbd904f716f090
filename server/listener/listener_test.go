package listener_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/server/listener"
)

// connect connects to a server.
func connect(t *testing.T, security *tls.Config) net.Conn {
	t.Helper()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(ctx, open, http.NotFoundHandler(), listener.DefaultLimits(), security, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	connection, err := net.Dial("tcp", open.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// A header with too many lines is refused before it ends, within TLS too: each line takes many times its size in memory.
// Few lines are not counted because they are read with the end of another request.
func TestLinesOfAHeaderAreLimited(t *testing.T) {
	t.Parallel()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	certified.Close()
	for name, security := range map[string]*tls.Config{"plain": nil, "TLS": {Certificates: certified.TLS.Certificates}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const line, host = "GET / HTTP/1.1\r\n", "Host: x\r\n"
			for text, statuses := range map[string][]int{
				line + host + strings.Repeat("X:\n", 255):                        {http.StatusRequestHeaderFieldsTooLarge},
				line + host + "\r\n" + line + host + strings.Repeat("X:\n", 600): {http.StatusNotFound, http.StatusRequestHeaderFieldsTooLarge},
			} {
				connection := connect(t, security)
				if security != nil {
					connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
				}
				if _, err := io.WriteString(connection, text); err != nil {
					t.Fatal(err)
				}
				responses := bufio.NewReader(connection)
				for _, want := range statuses {
					got, err := http.ReadResponse(responses, nil)
					if err != nil || got.StatusCode != want {
						t.Fatalf("the response is %+v, %v", got, err)
					}
					_, _ = io.Copy(io.Discard, got.Body)
				}
			}
		})
	}
}
