package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/server"
	"example.com/providerd/server/listener"
	"example.com/providerd/store/storetest/processtest"
)

// largestBody returns a valid body of 1 MiB for a workspace directory-sync provider, filled with one character.
func largestBody(character string) string {
	return directoryWith(`{"a":"` + strings.Repeat(character, 1<<20-len(directoryWith(`{"a":""}`))) + `"}`)
}

func (h *harness) directoryHead() string {
	return strings.Replace(h.head(), oauth2Path, workspaceDirectoryPath, 1)
}

// awaitStatus sends a body until the response has a status, and calls a function after each other response.
func (h *harness) awaitStatus(t *testing.T, body string, status int, more func()) answer {
	t.Helper()
	for begun := time.Now(); ; {
		got := h.post(t, workspaceDirectoryPath, body)
		if got.status == status {
			return got
		}
		processtest.Require(t, time.Since(begun) <= 3*time.Minute,
			"after three minutes status is %d, not %d: %.1000s", got.status, status, got.body)
		more()
	}
}

// TestHostileBodiesLeaveRoom uses all memory for large bodies, in ways that can last as long as the caller likes.
func TestHostileBodiesLeaveRoom(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	large := largestBody("x")
	// A small body with the longest list of violations, which counts as a large one.
	long := directoryWith(`{"` + strings.Repeat("<", 900) + `":[` + strings.Repeat(`"\u0000",`, 200) + "0]}")
	for name, c := range map[string]struct {
		callers int
		request string
	}{
		"bodies that stop, of one caller": {1, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large[:540_000])},
		"bodies that stop, of five":       {5, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large[:540_000])},
		// With small kernel buffers, data stays in the server.
		"responses that are not read": {1, strings.Repeat(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(long), long), 20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			limits := listener.DefaultLimits()
			limits.RequestTimeout, limits.ResponseTimeout = time.Hour, time.Hour
			address, own := h.listen(t, limits), h.token
			for i := range c.callers {
				h.token = h.newToken(t, fmt.Sprintf("caller-%d", i), time.Hour, workspaceDirectoryOperation)
				got := h.awaitStatus(t, large, http.StatusServiceUnavailable, func() {
					for range 10 {
						caller := connect(t, address)
						processtest.Must(t, caller.SetReadBuffer(1<<10))
						caller.send(t, h.directoryHead()+c.request)
					}
				})
				got.problem(t, http.StatusServiceUnavailable, "overloaded")
				processtest.Equal(t, got.header.Get("Retry-After"), "1", "Retry-After")
				h.token = own
			}
			for range 10 {
				h.post(t, oauth2Path, encode(t, minimal(oauth2Path))).record(t)
			}
			if c.callers == 1 {
				h.post(t, workspaceDirectoryPath, large).record(t)
			}
			h.awaitStatus(t, largestBody("<"), http.StatusCreated, func() {})
		})
	}
}

// TestLargeBodiesOfOneCaller announces large bodies of one caller, sends others at once, and then many that are refused
// after they were read. They must not block each other or leave anything reserved.
func TestLargeBodiesOfOneCaller(t *testing.T) {
	h := startParallel(t)
	body := largestBody("x")
	for range 60 {
		connect(t, strings.TrimPrefix(h.url, "http://")).
			send(t, h.directoryHead()+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:1]))
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { h.post(t, workspaceDirectoryPath, body).record(t) })
	}
	group.Wait()
	taken := with(minimal(oauth2Path), "client_id", "taken")
	h.post(t, oauth2Path, encode(t, taken)).record(t)
	taken["redirect_uris"] = "https://a.example.com/" + strings.Repeat("x", 1_000_000)
	for range 10 {
		h.post(t, oauth2Path, encode(t, taken)).problem(t, http.StatusConflict, "client-id-taken")
	}
	h.post(t, workspaceDirectoryPath, largestBody("<")).record(t)
}

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
				got := caller.want(t, c.status)
				processtest.Expect(t, got.Close, "the connection is kept open")
				caller.wantClosed(t, "the connection")
			}
		})
	}
}

// TestHostileBodiesThatStop gets the refusal although the body never arrives, even from an address with many of them.
func TestHostileBodiesThatStop(t *testing.T) {
	h := startParallel(t)
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

// TestWaitingCreatesHoldNoBodies locks the database while large creates wait for it. They must hold their records, the
// sealed secret included, but neither their bodies nor what was read of them. It is not parallel, because other tests
// would change the heap.
func TestWaitingCreatesHoldNoBodies(t *testing.T) {
	const waiting, room = 6, 1 << 19
	list := strings.Repeat(`,"`+flow+`"`, 26_000)[1:]
	for name, c := range map[string]struct {
		path, body string
		// perCreate is the memory of a record in bytes: of its strings, or of its ids and their text.
		perCreate int
	}{
		"a string":       {oauth2Path, oauth2With(`"redirect_uris":"https://a.example.com/` + strings.Repeat("x", 1_000_000) + `"`), 1_000_000},
		"a list":         {oauth2Path, oauth2With(`"property_mappings":[` + list + `]`), 26_000*16 + len(list)},
		"an object":      {workspaceDirectoryPath, largestBody("x"), 2 << 20},
		"a small object": {workspaceDirectoryPath, strings.Repeat(" ", 800_000) + directoryWith(`{"a":"`+strings.Repeat("x", 200_000)+`"}`), 400_000},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			h.post(t, c.path, c.body).record(t)
			unlock := h.lock(t)
			before := heap()
			var group sync.WaitGroup
			for range waiting {
				group.Go(func() { h.post(t, c.path, c.body) })
			}
			// One of them is inserted, and the others are in the queue.
			processtest.WaitUntil(t, "they wait", func() bool { return h.database.Stats().QueueLength >= waiting-1 })
			grown := heap() - before
			unlock()
			group.Wait()
			processtest.Expect(t, grown <= waiting*(c.perCreate+c.perCreate/8)+room,
				"%d creates hold %d bytes, %.2f times their records", waiting, grown, float64(grown)/float64(waiting*c.perCreate))
		})
	}
}

func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
