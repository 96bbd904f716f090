package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/providerd/server/listener"
	"example.com/providerd/store/storetest/processtest"
)

// TestManyNetworksLiftNoLimit sends invalid tokens from more networks than are counted. The latest must still wait.
func TestManyNetworksLiftNoLimit(t *testing.T) {
	handler, _ := startParallel(t).startCounted(t, 1)
	const networks, recent = 10_001, 1_000
	from := func(network int) int {
		return target{handler: handler}.post(oauth2Path, "{}", set("Authorization", mistypedToken), func(request *http.Request) {
			request.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", network>>8, network&0xff)
		}).status
	}
	for network := range networks {
		status := from(network)
		processtest.Require(t, status == http.StatusUnauthorized, "from network %d: status is %d, want 401", network, status)
	}
	for network := networks - recent; network < networks; network++ {
		status := from(network)
		processtest.Require(t, status == http.StatusTooManyRequests, "from network %d again: status is %d", network, status)
	}
}

// longHeader returns the beginning of a request whose header takes as much memory as the server accepts.
func longHeader() string {
	var header strings.Builder
	header.WriteString("GET /healthz HTTP/1.1\r\nHost: x\r\n")
	for i := range 240 {
		fmt.Fprintf(&header, "%s-%d: v\r\n", strings.Repeat("n", 50), i)
	}
	return header.String()
}

// fillWithHeaders stalls within long headers over new connections until a complete long header is refused.
func fillWithHeaders(t *testing.T, address string) (stalled []*peer) {
	t.Helper()
	for len(stalled) < 1_000 {
		for range 20 {
			stalled = append(stalled, connect(t, address).send(t, longHeader()))
		}
		switch got := connect(t, address).send(t, longHeader()+"\r\n").answer(t); {
		case got.StatusCode == http.StatusServiceUnavailable:
			wait := got.Header.Get("Retry-After")
			processtest.Expect(t, wait == "1" && got.Close, "Retry-After is %q, close %v", wait, got.Close)
			return stalled
		case got.StatusCode != http.StatusOK:
			t.Fatalf("status is %d", got.StatusCode)
		}
	}
	t.Fatal("1,000 long headers are accepted")
	return nil
}

// TestStalledHeadersShareMemory stalls within as many long headers as there is memory for. Others are refused, but not short
// ones; once the headers are gone, others are accepted again.
func TestStalledHeadersShareMemory(t *testing.T) {
	t.Parallel()
	limits := listener.DefaultLimits()
	limits.Grace, limits.HeaderTimeout, limits.RequestTimeout = time.Hour, time.Hour, time.Hour
	address := start(t).listen(t, limits)
	stalled := fillWithHeaders(t, address)
	connect(t, address).send(t, healthRequest).want(t, http.StatusOK)
	for i, caller := range stalled {
		if i < 100 {
			caller.send(t, "\r\n").want(t, http.StatusOK)
		} else {
			_ = caller.Close()
		}
	}
	// The server notices a moment later that a connection is closed.
	processtest.WaitUntil(t, "a long header is accepted", func() bool {
		return connect(t, address).send(t, longHeader()+"\r\n").answer(t).StatusCode == http.StatusOK
	})
	again := fillWithHeaders(t, address)
	processtest.Expect(t, len(again) >= len(stalled)/2, "%d long headers fit, at first %d", len(again), len(stalled))
}

// TestLongestStalledHeaderYields stalls within more long headers than there is memory for.
func TestLongestStalledHeaderYields(t *testing.T) {
	t.Parallel()
	limits := listener.DefaultLimits()
	limits.Grace, limits.HeaderTimeout, limits.RequestTimeout = time.Nanosecond, time.Hour, time.Hour
	address := start(t).listen(t, limits)
	short := connect(t, address).send(t, healthRequest[:20])
	longest := connect(t, address).send(t, longHeader())
	for range 600 {
		connect(t, address).send(t, longHeader())
	}
	longest.wantClosed(t, "the connection that has stalled longest within a long header")
	connect(t, address).send(t, longHeader()+"\r\n").want(t, http.StatusOK)
	short.send(t, healthRequest[20:]).want(t, http.StatusOK)
}

// TestRefusedHeaderYields refuses a header, whose connection then stays open for its response, and connects again.
func TestRefusedHeaderYields(t *testing.T) {
	t.Parallel()
	limits := listener.DefaultLimits()
	limits.Connections, limits.Grace, limits.HeaderTimeout = 2, time.Nanosecond, time.Hour
	address := start(t).listen(t, limits)
	slow := connect(t, address).send(t, healthRequest[:20])
	connect(t, address).send(t, longHeader()+strings.Repeat("n: v\r\n", 20)).want(t, http.StatusRequestHeaderFieldsTooLarge)
	connect(t, address).send(t, healthRequest).want(t, http.StatusOK)
	slow.send(t, healthRequest[20:]).want(t, http.StatusOK)
}

// TestRetriedRecordsShareMemory uses the memory for bodies. Of small retries, those of large records are refused.
func TestRetriedRecordsShareMemory(t *testing.T) {
	h := startParallel(t)
	address := h.listen(t, listener.DefaultLimits())
	large, small := largestBody("x"), directoryWith("{}")
	h.post(t, workspaceDirectoryPath, large, set("Idempotency-Key", "large")).record(t)
	h.post(t, workspaceDirectoryPath, small, set("Idempotency-Key", "small")).record(t)
	retrying := h.token
	for tries := 1; ; tries++ {
		for i := range 5 {
			h.token = h.newToken(t, fmt.Sprintf("caller-%d", i), time.Hour, workspaceDirectoryOperation)
			for range 4 {
				connect(t, address).send(t, h.directoryHead()+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large[:540_000]))
			}
		}
		h.token = retrying
		got := h.post(t, workspaceDirectoryPath, small, set("Idempotency-Key", "large"))
		if got.status == http.StatusServiceUnavailable {
			got.problem(t, http.StatusServiceUnavailable, "overloaded")
			processtest.Equal(t, got.header.Get("Retry-After"), "1", "Retry-After")
			break
		}
		got.problem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
		processtest.Require(t, tries != 40, "no retry is refused")
	}
	h.post(t, workspaceDirectoryPath, small, set("Idempotency-Key", "small")).record(t)
}
