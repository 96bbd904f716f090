package listener_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"example.com/providerd/server/listener"
)

// shortReads is a listener whose connections read at most so many bytes at a time.
type shortReads struct {
	net.Listener
	atMost int
}

func (l shortReads) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	return shortReadsConn{accepted, l.atMost}, err
}

type shortReadsConn struct {
	net.Conn
	atMost int
}

func (c shortReadsConn) Read(into []byte) (int, error) {
	return c.Conn.Read(into[:min(len(into), c.atMost)])
}

func connect(t *testing.T, atMost int, limits listener.Limits, security *tls.Config, handler http.HandlerFunc) net.Conn {
	t.Helper()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(ctx, shortReads{open, atMost}, handler, limits, security, slog.New(slog.DiscardHandler))
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

// echo answers with the size of the body, after other goroutines have run.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	runtime.Gosched()
	_, _ = fmt.Fprint(w, len(body), " ", err)
}

func send(t *testing.T, connection net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
}

const post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"

// TestShortReads sends pipelined requests that arrive in pieces. Some leave room for one byte in the buffer of net/http.
func TestShortReads(t *testing.T) {
	t.Parallel()
	long := strings.Replace(post, "\r\n\r\n", "\r\nX-Long: "+strings.Repeat("x", 5000)+"\r\n\r\n", 1)
	chunked := "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"
	for _, atMost := range []int{1, 2, 3, 5, 4093, 4094, 4095, 4096} {
		t.Run(fmt.Sprint(atMost), func(t *testing.T) {
			t.Parallel()
			connection := connect(t, atMost, listener.DefaultLimits(), nil, echo)
			send(t, connection, strings.Repeat(post+long+chunked, 3))
			answers := bufio.NewReader(connection)
			for range 9 {
				response, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(response.Body); err != nil || string(body) != "4 <nil>" {
					t.Fatalf("the answer is %q, %v", body, err)
				}
			}
		})
	}
}

// TestNoticedHangUp closes a connection after a request. The context of the request ends if hang-ups are to be noticed,
// and within TLS.
func TestNoticedHangUp(t *testing.T) {
	t.Parallel()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	certified.Close()
	noticing := listener.DefaultLimits()
	noticing.NoticeHangUps = true
	for name, c := range map[string]struct {
		limits   listener.Limits
		security *tls.Config
	}{
		"plain": {limits: noticing},
		"TLS":   {listener.DefaultLimits(), &tls.Config{Certificates: certified.TLS.Certificates}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error)
			handler := func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				ended <- errors.Join(err, r.Context().Err())
			}
			connection := connect(t, 4096, c.limits, c.security, handler)
			if c.security != nil {
				connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
			}
			send(t, connection, post)
			if err := connection.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the context ended with %v", err)
			}
		})
	}
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
				line + host + "\r\n" + line + host + strings.Repeat("X:\n", 600): {http.StatusOK, http.StatusRequestHeaderFieldsTooLarge},
			} {
				connection := connect(t, 4096, listener.DefaultLimits(), security, echo)
				if security != nil {
					connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
				}
				send(t, connection, text)
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
