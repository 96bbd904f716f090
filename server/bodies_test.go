package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/server/listener"
	"example.com/providerd/store/storetest/processtest"
)

// largestBody returns a valid body of 1 MiB for a workspace directory-sync provider, filled with one character.
func largestBody(character string) string {
	return directoryWith(`{"a":"` + strings.Repeat(character, 1<<20-len(directoryWith(`{"a":""}`))) + `"}`)
}

// directoryHead is the head for a workspace directory-sync provider.
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
		if time.Since(begun) > 3*time.Minute {
			t.Fatalf("after three minutes status is %d, not %d: %.1000s", got.status, status, got.body)
		}
		more()
	}
}

// demandSmallCreates checks that small bodies are accepted while large ones use all memory.
func (h *harness) demandSmallCreates(t *testing.T) {
	t.Helper()
	for range 10 {
		h.post(t, oauth2Path, encode(t, minimal(oauth2Path))).record(t)
	}
}

// TestHostileBodiesKeepNobodyOut uses all memory for large bodies, in ways that can last as long as the caller likes.
func TestHostileBodiesKeepNobodyOut(t *testing.T) {
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
				if got.header.Get("Retry-After") != "1" {
					t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
				}
				h.token = own
			}
			h.demandSmallCreates(t)
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
	t.Parallel()
	h := start(t)
	body := largestBody("x")
	for range 60 {
		connect(t, strings.TrimPrefix(h.url, "http://")).
			send(t, h.directoryHead()+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body[:1]))
	}
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			if got := h.post(t, workspaceDirectoryPath, body); got.status != http.StatusCreated {
				return fmt.Errorf("status is %d: %s", got.status, got.body)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	taken := minimal(oauth2Path)
	taken["client_id"] = "taken"
	h.post(t, oauth2Path, encode(t, taken)).record(t)
	taken["redirect_uris"] = "https://a.example.com/" + strings.Repeat("x", 1_000_000)
	for range 10 {
		h.post(t, oauth2Path, encode(t, taken)).problem(t, http.StatusConflict, "client-id-taken")
	}
	h.post(t, workspaceDirectoryPath, largestBody("<")).record(t)
}
