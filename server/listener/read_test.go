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
	"sync/atomic"
	"testing"

	"example.com/providerd/server/listener"
)

// counter is a listener whose connections count reads, each of at most this many bytes.
type counter struct {
	net.Listener
	atMost int
	reads  atomic.Int64
}

func (c *counter) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	return &countedConn{accepted, c}, err
}

type countedConn struct {
	net.Conn
	counter *counter
}

func (c *countedConn) Read(into []byte) (int, error) {
	c.counter.reads.Add(1)
	return c.Conn.Read(into[:min(len(into), c.counter.atMost)])
}

// serve serves a handler and returns its counter.
func serve(
	t *testing.T, atMost int, limits listener.Limits, security *tls.Config, handler http.HandlerFunc,
) *counter {
	t.Helper()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{Listener: open, atMost: atMost}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() {
		served <- listener.Serve(ctx, c, handler, limits, security, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
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

// expect reads so many responses, which must have this body.
func expect(t *testing.T, connection net.Conn, responses int, want string) {
	t.Helper()
	answers := bufio.NewReader(connection)
	for range responses {
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != want {
			t.Fatalf("%q, %v, want %q", body, err, want)
		}
	}
}

func dial(t *testing.T, c *counter) *net.TCPConn {
	t.Helper()
	connection, err := net.Dial("tcp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection.(*net.TCPConn)
}

const post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"

// TestOneReadForEachRequest fails if net/http reads in the background in another way than Conn.Read expects.
func TestOneReadForEachRequest(t *testing.T) {
	t.Parallel()
	const requests = 100
	c := serve(t, 4096, listener.DefaultLimits(), nil, echo)
	connection := dial(t, c)
	for range requests {
		send(t, connection, post)
		expect(t, connection, 1, "4 <nil>")
	}
	// A background read that is ended before it has begun reaches the socket.
	if reads := c.reads.Load(); reads > requests+requests/2 {
		t.Errorf("%d reads for %d requests", reads, requests)
	}
}

// TestShortReads sends pipelined requests that arrive in pieces. Some leave room for one byte in the buffer of net/http.
func TestShortReads(t *testing.T) {
	t.Parallel()
	long := strings.Replace(post, "\r\n\r\n", "\r\nX-Long: "+strings.Repeat("x", 5000)+"\r\n\r\n", 1)
	chunked := "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"
	for _, atMost := range []int{1, 2, 3, 5, 4093, 4094, 4095, 4096} {
		t.Run(fmt.Sprint(atMost), func(t *testing.T) {
			t.Parallel()
			connection := dial(t, serve(t, atMost, listener.DefaultLimits(), nil, echo))
			send(t, connection, strings.Repeat(post+long+chunked, 3))
			expect(t, connection, 9, "4 <nil>")
		})
	}
}

// TestBodyCutOff closes the sending half of a connection in the middle of a body.
func TestBodyCutOff(t *testing.T) {
	t.Parallel()
	connection := dial(t, serve(t, 4096, listener.DefaultLimits(), nil, echo))
	send(t, connection, post[:len(post)-1])
	if err := connection.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expect(t, connection, 1, "3 unexpected EOF")
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
			var connection net.Conn = dial(t, serve(t, 4096, c.limits, c.security, handler))
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
