package server_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestManyNetworksLiftNoLimit sends invalid tokens from more networks than are counted. Those that sent one most recently
// must still wait.
func TestManyNetworksLiftNoLimit(t *testing.T) {
	t.Parallel()
	h := start(t)
	handler, _ := h.startCounted(t, 1)
	const networks, recent = 10_001, 1_000
	from := func(network int) int {
		return target{handler: handler}.post(oauth2Path, "{}", set("Authorization", mistypedToken), func(request *http.Request) {
			request.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", network>>8, network&0xff)
		}).status
	}
	for network := range networks {
		if status := from(network); status != http.StatusUnauthorized {
			t.Fatalf("from network %d: status is %d, want 401", network, status)
		}
	}
	for network := networks - recent; network < networks; network++ {
		if status := from(network); status != http.StatusTooManyRequests {
			t.Fatalf("from network %d again: status is %d, want 429", network, status)
		}
	}
}
