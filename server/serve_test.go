package server_test

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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/server/listener"
	"example.com/providerd/store/storetest/processtest"
)

// listen serves the harness's store on a real listener with limits until the test ends, and returns the address.
func (h *harness) listen(t *testing.T, limits listener.Limits) string {
	t.Helper()
	address, drain := h.serveUntilDrained(t, limits, nil)
	t.Cleanup(func() { processtest.Check(t, drain()) })
	h.url = "http://" + address
	return address
}

// serveUntilDrained starts a server with limits. drain stops it, and returns how that ended.
func (h *harness) serveUntilDrained(
	t *testing.T, limits listener.Limits, security *tls.Config,
) (address string, drain func() error) {
	t.Helper()
	open := processtest.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	handler, logger := h.newServer(t), slog.New(slog.NewJSONHandler(h.log, nil))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- listener.Serve(ctx, open, handler, limits, security, logger) }()
	t.Cleanup(cancel)
	return open.Addr().String(), func() error { cancel(); return <-done }
}

// head is the header of a create with the harness's token, to which more fields and a blank line can be added.
func (h *harness) head() string {
	return "POST " + oauth2Path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		"Authorization: Bearer " + h.token + "\r\n"
}

// TestHostileConnections sends malformed or slow requests: each connection is closed after at most one response.
func TestHostileConnections(t *testing.T) {
	h := startParallel(t)
	limits := listener.DefaultLimits()
	limits.HeaderTimeout, limits.RequestTimeout = 500*time.Millisecond, time.Second
	address := h.listen(t, limits)
	body := encode(t, minimal(oauth2Path))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	cases := map[string]struct {
		// text is sent at once. Then drip is sent repeatedly, until the server closes the connection.
		text, drip string
		// want is the status; "" if the connection must be closed without a response.
		want string
	}{
		"slow header":               {text: "POST / HTTP/1.1\r\n", drip: "X-Slow: 1\r\n", want: ""},
		"header that never ends":    {text: "POST / HTTP/1.1\r\nHost: x\r\n", want: ""},
		"silence":                   {want: ""},
		"slow body":                 {text: h.head() + "Content-Length: 1000\r\n\r\n", drip: " ", want: "400"},
		"slow chunked body":         {text: h.head() + "Transfer-Encoding: chunked\r\n\r\n", drip: "1\r\n \r\n", want: "400"},
		"body that never comes":     {text: h.head() + "Content-Length: 1000\r\n\r\n", want: "400"},
		"10,000 header fields":      {text: h.head() + strings.Repeat("X-Many: 1\r\n", 10_000) + "\r\n", want: "431"},
		"one long header field":     {text: h.head() + "X-Long: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", want: "431"},
		"two content lengths":       {text: h.head() + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", want: "400"},
		"list of content lengths":   {text: h.head() + "Content-Length: 5, 5\r\n\r\n", want: "400"},
		"negative content length":   {text: h.head() + "Content-Length: -1\r\n\r\n", want: "400"},
		"signed content length":     {text: h.head() + "Content-Length: +5\r\n\r\n12345", want: "400"},
		"other transfer encoding":   {text: h.head() + "Transfer-Encoding: gzip, chunked\r\n\r\n", want: "501"},
		"two transfer encodings":    {text: h.head() + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", want: "501"},
		"padded transfer encoding":  {text: h.head() + "Transfer-Encoding: \x0bchunked\r\n\r\n", want: "400"},
		"space before the colon":    {text: h.head() + "Content-Length : 5\r\n\r\n12345", want: "400"},
		"folded header field":       {text: h.head() + "X-Fold: a\r\n b\r\nConnection: close\r\nContent-Length: 5\r\n\r\n12345", want: "400"},
		"bad chunk size":            {text: h.head() + "Transfer-Encoding: chunked\r\n\r\n-5\r\n12345\r\n0\r\n\r\n", want: "400"},
		"endless chunk extension":   {text: h.head() + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 1<<20), want: "400"},
		"no host":                   {text: "GET /healthz HTTP/1.1\r\n\r\n", want: "400"},
		"two hosts":                 {text: "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", want: "400"},
		"rubbish":                   {text: "\x16\x03\x01\x00\xa5\x01\r\n\r\n", want: "400"},
		"length and encoding":       {text: h.head() + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, want: "201"},
		"HTTP/1.0 and an encoding":  {text: strings.Replace(h.head(), "1.1", "1.0", 1) + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, want: "400"},
		"longer than it says":       {text: h.head() + "Connection: close\r\nContent-Length: 2\r\n\r\n{}GET /healthz HTTP/1.1\r\n\r\n", want: "400"},
		"method that is no method":  {text: "G(T /healthz HTTP/1.1\r\nHost: x\r\n\r\n", want: "400"},
		"version that is none":      {text: "GET /healthz HTTP/1.x\r\nHost: x\r\n\r\n", want: "400"},
		"path with a control":       {text: "GET /health\x01z HTTP/1.1\r\nHost: x\r\n\r\n", want: "400"},
		"header with a NUL":         {text: h.head() + "X-Nul: a\x00b\r\n\r\n", want: "400"},
		"header with a bare return": {text: h.head() + "X-Return: a\rb\r\n\r\n", want: "400"},
	}
	var creates, group sync.WaitGroup
	var done atomic.Bool
	creates.Go(func() {
		for !done.Load() {
			h.post(t, oauth2Path, body).record(t)
		}
	})
	// Parallel subtests would wait for those of other tests, while the creates use all processors.
	for name, test := range cases {
		group.Go(func() {
			t.Run(name, func(t *testing.T) {
				caller := connect(t, address)
				processtest.Must(t, caller.SetDeadline(time.Now().Add(30*time.Second)))
				go func() {
					_, err := io.WriteString(caller, test.text)
					for err == nil && test.drip != "" {
						<-time.After(20 * time.Millisecond)
						_, err = io.WriteString(caller, test.drip)
					}
				}()
				processtest.Equal(t, statusesOf(t, caller.answers), test.want, "statuses")
			})
		})
	}
	group.Wait()
	done.Store(true)
	creates.Wait()
	processtest.Expect(t, h.count(t) >= 2, "no ordinary create succeeded in the meantime")
}

// statusesOf returns the statuses of all responses on a connection, which the server must close.
func statusesOf(t *testing.T, responses *bufio.Reader) (statuses string) {
	t.Helper()
	for {
		response, err := http.ReadResponse(responses, nil)
		if err != nil {
			if lost, ok := errors.AsType[*net.OpError](err); ok && lost.Timeout() || !ok && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the connection is still open, or the response is malformed: %v", err)
			}
			return statuses
		}
		statuses += fmt.Sprint(response.StatusCode)
		_, _ = io.Copy(io.Discard, response.Body)
	}
}

// Malformed HTTP is refused by the HTTP library, without a request id. The header may have 16 KiB and,
// with the request line, 256 lines.
func TestMalformedHTTPHasNoRequestID(t *testing.T) {
	h := startParallel(t)
	address := h.listen(t, listener.DefaultLimits())
	const request = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
	long := func(length int) string {
		return request + "X: " + strings.Repeat("x", length-len(request)-len("X: \r\n\r\n")) + "\r\n\r\n"
	}
	fields := func(count int) string { return strings.Repeat("X:\n", count) }
	for text, want := range map[string]int{
		request + fields(255) + "\r\n": 431, request + fields(1000): 431,
		request + "X\r\n\r\n": 400, request + "Expect: 200-ok\r\n\r\n": 417, long(16<<10 + 1): 431,
		request + "Transfer-Encoding: gzip\r\n\r\n": 501, strings.Replace(request, "1.1", "3.0", 1) + "\r\n": 505,
	} {
		got, err := http.ReadResponse(connect(t, address).send(t, text).answers, nil)
		processtest.Expect(t, err == nil && got.StatusCode == want && got.Close && got.Header.Get("X-Request-Id") == "" &&
			got.Header.Get("Content-Type") != "application/problem+json",
			"%.60q is answered %+v, %v, want %d", text, got, err, want)
	}
	connect(t, address).send(t, long(16<<10)).want(t, http.StatusOK)
	connect(t, address).send(t, request+fields(254)+"\r\n").want(t, http.StatusOK)
	// The lines of a body do not count, even if its header was read with the request before it.
	body := strings.Replace(encode(t, minimal(oauth2Path)), ",", ","+strings.Repeat("\n ", 300), 1)
	pipelined := connect(t, address).send(t, request+"\r\n"+h.head()+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)))
	pipelined.want(t, http.StatusOK)
	pipelined.send(t, body).want(t, http.StatusCreated)
}

// The body of a pipelined request is never taken for a request, even if its lines are counted as those of a header: the
// end of the header is the first that is read after the request before.
func TestBodyIsNotARequest(t *testing.T) {
	h := startParallel(t)
	address := h.listen(t, listener.DefaultLimits())
	const read, request = 4096, "GET /healthz HTTP/1.1\r\nHost: x\r\n"
	for shift := range 5 {
		body := "{" + strings.Repeat(" \n", 300)
		body += strings.Repeat(" ", read-len("\r\n")-len(body)) + request + "\r\n"
		head := h.head() + fmt.Sprintf("Content-Length: %d\r\n", len(body))
		padding := read - 2 + shift - len(request+"X: \r\n\r\n"+head)
		sent := request + "X: " + strings.Repeat("x", padding) + "\r\n\r\n" + head + "\r\n" + body
		caller := connect(t, address).send(t, sent+request+"Connection: close\r\n\r\n")
		// The second request is refused; the last one is answered, or the connection is closed before it.
		if statuses := statusesOf(t, caller.answers); statuses != "200400200" && statuses != "200431" {
			t.Errorf("shift %d: the statuses are %s", shift, statuses)
		}
	}
}

// A header with too many lines is refused before it ends, within TLS too: each line takes many times its size in memory.
// Few lines are not counted because they are read with the end of another request.
func TestLinesOfAHeaderAreLimited(t *testing.T) {
	h := startParallel(t)
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	certified.Close()
	const request = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
	plain, _ := h.serveUntilDrained(t, listener.DefaultLimits(), nil)
	secured, _ := h.serveUntilDrained(t, listener.DefaultLimits(), &tls.Config{Certificates: certified.TLS.Certificates})
	for text, want := range map[string]string{
		request + strings.Repeat("X:\n", 255):                    "431",
		request + "\r\n" + request + strings.Repeat("X:\n", 600): "200431",
	} {
		processtest.Equal(t, statusesOf(t, connect(t, plain).send(t, text).answers), want, "statuses")
		connection := tls.Client(connect(t, secured), &tls.Config{InsecureSkipVerify: true})
		_, err := io.WriteString(connection, text)
		if statuses := statusesOf(t, bufio.NewReader(connection)); err != nil || statuses != want {
			t.Errorf("within TLS, the statuses are %s, want %s, %v", statuses, want, err)
		}
	}
}

// A server that stops ends a request that does not finish, and logs it.
func TestDrainIsBounded(t *testing.T) {
	h := startParallel(t)
	limits := listener.DefaultLimits()
	processtest.Equal(t, limits.DrainTimeout, 30*time.Second, "limit of requests in flight")
	limits.DrainTimeout = 100 * time.Millisecond
	address, drain := h.serveUntilDrained(t, limits, nil)
	pending := h.begin(t, address, encode(t, minimal(oauth2Path)))
	processtest.IsError(t, drain(), context.DeadlineExceeded)
	pending.wantClosed(t, "the connection of a request that does not end")
}

// A caller who sends nothing more is refused when the time for its request ends, and cannot make a drain fail.
func TestDrainOutlastsBodies(t *testing.T) {
	h := startParallel(t)
	limits := listener.DefaultLimits()
	processtest.Expect(t, limits.RequestTimeout <= limits.DrainTimeout,
		"requests may take %v to arrive, but the drain %v", limits.RequestTimeout, limits.DrainTimeout)
	limits.RequestTimeout, limits.DrainTimeout = 300*time.Millisecond, 300*time.Millisecond
	address, drain := h.serveUntilDrained(t, limits, nil)
	for range 50 {
		h.begin(t, address, encode(t, minimal(oauth2Path)))
	}
	processtest.Check(t, drain())
}

func TestOtherMethods(t *testing.T) {
	h := startParallel(t)
	address := h.listen(t, listener.DefaultLimits())
	got := h.send(t, http.MethodOptions, oauth2Path, nil)
	if allow := got.header.Get("Allow"); got.status != http.StatusNoContent || !strings.Contains(allow, "POST") {
		t.Errorf("OPTIONS is answered %d with Allow %q", got.status, allow)
	}
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodTrace, "PROPFIND",
	} {
		got := h.send(t, method, oauth2Path, nil)
		if allow := got.header.Get("Allow"); got.status != http.StatusMethodNotAllowed || allow != "OPTIONS, POST" {
			t.Errorf("%s is answered %d with Allow %q", method, got.status, allow)
		}
	}
	h.send(t, http.MethodOptions, "/nowhere", nil).problem(t, http.StatusNotFound, "not-found")
	options := connect(t, address).send(t, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	processtest.Equal(t, statusesOf(t, options.answers), "404", "status of OPTIONS *")
}
