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

// limitRate starts a server that accepts a number of requests per hour and token name.
func (h *harness) limitRate(t *testing.T, requests int) {
	t.Helper()
	h.serve(t, func(config *server.Config) {
		config.RateLimit = server.RateLimit{Requests: requests, Window: time.Hour}
	})
}

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
	h.limitRate(t, 3)
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
