package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/server"
	"example.com/providerd/server/listener"
	"example.com/providerd/store/storetest/processtest"
)

// TestHostileBodiesOfRefusedRequests sends complete bodies before it reads the response, as many HTTP libraries do,
// with requests that are refused earlier. The body of one that is refused without reading it is never requested.
func TestHostileBodiesOfRefusedRequests(t *testing.T) {
	t.Parallel()
	h := start(t)
	limits := listener.DefaultLimits()
	h.serve(t, func(config *server.Config) {
		config.FailedAttempts, config.RateLimit = 1, server.RateLimit{Requests: 1, Window: time.Hour}
	})
	limited := strings.TrimPrefix(h.url, "http://")
	h.post(t, oauth2Path, "{}")
	address := h.listen(t, limits)
	forbidden := h.newToken(t, "forbidden", time.Hour, workspaceDirectoryOperation)
	valid := h.head()
	for name, c := range map[string]struct {
		address, head string
		length        int
		status        int
	}{
		"no token":            {address, strings.Replace(valid, "Authorization", "X-Other", 1), 1 << 20, 401},
		"too many tokens":     {limited, strings.Replace(valid, h.token, "x", 1), 1 << 20, 429},
		"too many requests":   {limited, valid, 1 << 20, 429},
		"another operation":   {address, strings.Replace(valid, h.token, forbidden, 1), 1 << 20, 403},
		"no such path":        {address, strings.Replace(valid, oauth2Path, "/other", 1), 1 << 20, 404},
		"another method":      {address, strings.Replace(valid, "POST", "PUT", 1), 1 << 20, 405},
		"another media type":  {address, strings.Replace(valid, "application/json", "text/plain", 1), 1 << 20, 415},
		"not accepted":        {address, valid + "Accept: text/html\r\n", 1 << 20, 406},
		"too large":           {address, valid, 1<<20 + 1<<17, 413},
		"too large, in parts": {address, valid, -(1<<20 + 1<<17), 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.status == http.StatusTooManyRequests {
				// One more invalid token is allowed each minute, and other tests may have taken that long.
				connect(t, c.address).send(t, c.head+"Content-Length: 0\r\n\r\n").answer(t)
			}
			if c.status != http.StatusRequestEntityTooLarge {
				connect(t, c.address).send(t, c.head+"Content-Length: 10\r\nExpect: 100-continue\r\n\r\n").want(t, c.status)
			}
			for range 5 {
				caller := connect(t, c.address)
				// As over a network, the kernel does not buffer the whole body before the server reads it.
				processtest.Must(t, caller.SetWriteBuffer(16<<10))
				if c.length > 0 {
					caller.send(t, c.head+fmt.Sprintf("Content-Length: %d\r\n\r\n", c.length)+strings.Repeat(" ", c.length))
				} else {
					caller.send(t, c.head+fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
						-c.length, strings.Repeat(" ", -c.length)))
				}
				if got := caller.want(t, c.status); !got.Close {
					t.Error("the connection is kept open")
				}
				caller.wantClosed(t, "the connection")
			}
		})
	}
}

// TestHostileBodiesThatDoNotCome gets the refusal although most of the body never arrives, even from an address that
// has the maximum number of such bodies.
func TestHostileBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	h := start(t)
	limits := listener.DefaultLimits()
	limits.RequestTimeout = time.Hour
	address := h.listen(t, limits)
	head := strings.Replace(h.head(), "Authorization", "X-Other", 1) + "Content-Length: 1000000\r\n\r\n"
	connect(t, address).send(t, strings.Replace(head, "1000000", "1000", 1)).want(t, http.StatusUnauthorized)
	callers := make([]*peer, 100)
	for i := range callers {
		callers[i] = connect(t, address).send(t, head+strings.Repeat(" ", 1000))
	}
	for _, caller := range callers {
		caller.want(t, http.StatusUnauthorized)
	}
	expecting := strings.TrimSuffix(head, "\r\n") + "Expect: 100-continue\r\n\r\n"
	connect(t, address).send(t, expecting).want(t, http.StatusUnauthorized)
}
