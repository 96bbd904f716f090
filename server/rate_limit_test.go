package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/server"
)

// However many requests of a caller are concurrent, no more are allowed than the limit says. Allowed ones are refused
// because of their bodies.
func TestRateLimitOfConcurrentRequests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	const requests, connections, each = 1000, 64, 300
	h := start(t)
	h.serve(t, func(config *server.Config) {
		config.RateLimit = server.RateLimit{Requests: requests, Window: time.Second}
	})
	var allowed atomic.Int64
	var group sync.WaitGroup
	begin := time.Now()
	for range connections {
		group.Go(func() {
			for range each {
				if h.post(t, oauth2Path, "{}").status == http.StatusBadRequest {
					allowed.Add(1)
				}
			}
		})
	}
	group.Wait()
	elapsed := time.Since(begin)
	most := int64(requests * (1 + elapsed.Seconds()))
	if got := allowed.Load(); got < requests || got > most {
		t.Errorf("%d requests were allowed in %v, want %d to %d", got, elapsed, requests, most)
	}
}

// All requests with tokens of one name count, whatever their outcome. Other names are not affected.
func TestRateLimitIsForTheNameOfTheToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.serve(t, func(config *server.Config) { config.RateLimit = server.RateLimit{Requests: 3, Window: time.Hour} })
	body := encode(t, minimal(oauth2Path))
	narrow := h.newToken(t, "test", time.Hour, oauth2Operation)
	other := h.newToken(t, "other", time.Hour, oauth2Operation)
	created := h.post(t, oauth2Path, body)
	created.record(t)
	faulty := h.post(t, oauth2Path, "{}")
	faulty.problem(t, http.StatusBadRequest, "validation-failed")
	forbidden := h.post(t, workspaceDirectoryPath, "{}", set("Authorization", "Bearer "+narrow))
	forbidden.problem(t, http.StatusForbidden, "forbidden")
	for remaining, response := range []answer{forbidden, faulty, created} {
		want := regexp.MustCompile(fmt.Sprintf(`^"caller";r=%d;t=1[12]\d\d$`, remaining))
		if got := response.header.Get("RateLimit"); !want.MatchString(got) {
			t.Errorf("RateLimit is %q, want %s", got, want)
		}
	}
	for _, path := range []string{oauth2Path, workspaceDirectoryPath, oauth2Path + "?validate_only=true"} {
		for _, token := range []string{h.token, narrow} {
			limited := h.post(t, path, body, set("Authorization", "Bearer "+token))
			problem := limited.problem(t, http.StatusTooManyRequests, "too-many-requests")
			if !strings.Contains(problem.Detail, "3 requests per 3600 s") {
				t.Errorf("detail is %s", problem.Detail)
			}
			seconds, err := strconv.Atoi(limited.header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 1200 {
				t.Errorf("Retry-After is %q, want 1 to 1200", limited.header.Get("Retry-After"))
			}
			if got, want := limited.header.Get("RateLimit"), `"caller";r=0;t=`+strconv.Itoa(seconds); got != want {
				t.Errorf("RateLimit is %q, want %q", got, want)
			}
			if got := limited.header.Get("RateLimit-Policy"); got != `"caller";q=3;w=3600` {
				t.Errorf("RateLimit-Policy is %q", got)
			}
		}
	}
	h.post(t, oauth2Path, body, set("Authorization", "Bearer "+other)).record(t)
	unknown := h.post(t, oauth2Path, body, set("Authorization", mistypedToken))
	unknown.problem(t, http.StatusUnauthorized, "unauthorized")
	if policy := unknown.header.Get("RateLimit-Policy"); policy != "" {
		t.Errorf("an unknown caller has the RateLimit-Policy %q", policy)
	}
	if h.send(t, http.MethodGet, "/healthz", nil).status != http.StatusOK {
		t.Error("what needs no token is limited")
	}
}

// mistypedToken has the wrong checksum.
const mistypedToken = "Bearer pvd_0000000000000000000000000000000000000000"

// After 20 invalid tokens, an address must wait. Valid tokens from it are still accepted, and other addresses are not
// affected. The reason for refusing a token is counted even if its address must wait.
func TestInvalidTokensAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	h := start(t)
	const limit = 20
	handler, registry := h.startCounted(t, limit)
	body := encode(t, minimal(oauth2Path))
	expired := set("Authorization", "Bearer "+h.newToken(t, "x", -time.Second, oauth2Operation))
	for range limit {
		h.post(t, oauth2Path, body, expired).problem(t, http.StatusUnauthorized, "unauthorized")
	}
	limited := h.post(t, oauth2Path, body, expired)
	limited.problem(t, http.StatusTooManyRequests, "too-many-requests")
	if wait, err := strconv.Atoi(limited.header.Get("Retry-After")); err != nil || wait < 1 || wait > 3 {
		t.Errorf("Retry-After is %q, want 1 to 3", limited.header.Get("Retry-After"))
	}
	series := seriesOf(t, registry)
	for name, want := range map[string]float64{
		"token_refusals_total{expired}": limit + 1, "problems_total{unauthorized}": limit, "problems_total{too-many-requests}": 1,
	} {
		if got := series["providerd_"+name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	h.post(t, oauth2Path, body).record(t)
	h.post(t, oauth2Path, body, set("Authorization")).problem(t, http.StatusUnauthorized, "unauthorized")

	// from sends an invalid token as if from an address.
	from := func(address string) int {
		return target{handler: handler}.post(oauth2Path, "{}", set("Authorization", mistypedToken),
			func(request *http.Request) { request.RemoteAddr = address }).status
	}
	for address, want := range map[string]int{
		"127.0.0.1:1":         http.StatusTooManyRequests,
		"192.0.2.1:1":         http.StatusUnauthorized,
		"[2001:db8::1]:1":     http.StatusUnauthorized,
		"[2001:db8:0:1::1]:1": http.StatusUnauthorized,
	} {
		if status := from(address); status != want {
			t.Errorf("from %s: status is %d, want %d", address, status, want)
		}
	}
	// All addresses of a /64 network count as one.
	for i := range limit {
		from("[2001:db8::" + strconv.Itoa(i+1) + "]:1")
	}
	if status := from("[2001:db8::ffff]:1"); status != http.StatusTooManyRequests {
		t.Errorf("status is %d, want 429", status)
	}
}
