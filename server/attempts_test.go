package server_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// mistypedToken has the wrong checksum.
const mistypedToken = "Bearer pvd_0000000000000000000000000000000000000000"

// After 20 invalid tokens, an address must wait. Valid tokens from it are still accepted, and other addresses are not
// affected. The reason for refusing a token is counted even if its address must wait.
func TestWrongTokensAreLimitedByAddress(t *testing.T) {
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
