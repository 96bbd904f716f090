package serving_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestTrustedProxy sends requests as a proxy: the limit of invalid tokens, the log and the audit use the addresses of
// its clients.
func TestTrustedProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir, "--trusted-proxy", "127.0.0.0/8", "--trusted-proxy", "::1",
		"--failed-attempts", "1", "--ops-listen", "127.0.0.1:0")
	ops := providerdtest.OpsURL(t, server)
	token := providerdtest.Token(t, dir)
	for _, request := range []struct {
		token, forwarded string
		want             int
	}{
		{"invalid", "192.0.2.1", http.StatusUnauthorized},
		{"invalid", "192.0.2.1", http.StatusTooManyRequests},
		{"invalid", "192.0.2.2", http.StatusUnauthorized},
		{"invalid", "203.0.113.9, 192.0.2.2", http.StatusTooManyRequests},
		{token, "192.0.2.1", http.StatusCreated},
		{token, "nonsense", http.StatusCreated},
	} {
		header := http.Header{"Content-Type": {"application/json"}, "X-Forwarded-For": {request.forwarded}}
		status := server.Send(t, http.DefaultClient, http.MethodPost, providerdtest.OAuth2Path, request.token, providerdtest.OAuth2Body, header)
		if status != request.want {
			t.Errorf("%s, %s: status is %d, want %d", request.token, request.forwarded, status, request.want)
		}
	}
	if malformed := providerdtest.Scrape(t, ops)["providerd_malformed_forwarded_total"]; malformed != 1 {
		t.Errorf("%v requests are counted as malformed, want 1", malformed)
	}
	audit := providerdtest.RunCommand(t, dir, "audit")
	server.Stop(t)
	for _, want := range []string{" 192.0.2.1\n", " 127.0.0.1\n"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit lacks %s: %s", want, audit)
		}
	}
	if log := server.Stderr.String(); strings.Count(log, " client=192.0.2.") != 5 || strings.Contains(log, "203.0.113.9") {
		t.Errorf("the log is %s", log)
	}
}

// TestRateLimit checks that a client can continue after waiting, and that refused requests do not count.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir, "--ops-listen", "127.0.0.1:0", "--rate-limit", "2/s")
	ops, client := providerdtest.OpsURL(t, server), contracttest.Client(t)
	statuses := map[int]int{}
	processtest.WaitUntil(t, "five creates are stored and one is refused", func() bool {
		status, _, err := server.Post(client, providerdtest.OAuth2Path, providerdtest.OAuth2Body)
		processtest.Must(t, err)
		statuses[status]++
		return statuses[http.StatusCreated] >= 5 && statuses[http.StatusTooManyRequests] > 0
	})
	const limited = `providerd_rate_limited_total{operation="providers_oauth2_create"}`
	if count := providerdtest.Scrape(t, ops)[limited]; len(statuses) != 2 || count != float64(statuses[http.StatusTooManyRequests]) {
		t.Errorf("statuses are %v, and %v requests are counted as limited", statuses, count)
	}
}
