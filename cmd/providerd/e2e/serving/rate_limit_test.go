package serving_test

import (
	"net/http"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestRateLimit checks that a client can continue after waiting, and that refused requests do not count.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir, "--ops-listen", "127.0.0.1:0", "--rate-limit", "2/s")
	ops, client := providerdtest.OpsURL(t, server), contracttest.Client(t)
	statuses := map[int]int{}
	processtest.WaitUntil(t, "five creates are stored and one is refused", func() bool {
		status, _, err := server.Post(client, providerdtest.OAuth2Path, providerdtest.OAuth2Body)
		if err != nil {
			t.Fatal(err)
		}
		statuses[status]++
		return statuses[http.StatusCreated] >= 5 && statuses[http.StatusTooManyRequests] > 0
	})
	const limited = `providerd_rate_limited_total{operation="providers_oauth2_create"}`
	if count := providerdtest.Scrape(t, ops)[limited]; len(statuses) != 2 || count != float64(statuses[http.StatusTooManyRequests]) {
		t.Errorf("statuses are %v, and %v requests are counted as limited", statuses, count)
	}
}
