package client_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"example.com/providerd/gen/client"
)

// A create whose response is lost or temporarily refused is sent again with the same key. So is a validation.
func TestTemporaryFaultsAreRetriedWithOneKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wire.instead = []func(*http.Request, *http.Response) (*http.Response, error){
		lost, unavailable(http.StatusServiceUnavailable, "1"), unavailable(http.StatusTooManyRequests, "1"),
	}
	begun := time.Now()
	record, err := r.providers.CreateOAuth2(t.Context(), oauth2Request())
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(begun); waited < 2*time.Second {
		t.Errorf("the two Retry-After of a second took %s", waited)
	}
	if record.PK != 1 {
		t.Errorf("pk is %d: the lost create was stored twice", record.PK)
	}
	if keys := slices.Compact(slices.Clone(r.wire.keys)); len(r.wire.keys) != 4 || len(keys) != 1 || keys[0] == "" {
		t.Errorf("keys are %v", r.wire.keys)
	}
	if next, err := r.providers.CreateOAuth2(t.Context(), oauth2Request()); err != nil || next.PK != 2 {
		t.Errorf("the next create gives %v, %v", next, err)
	}
	r.wire.instead = []func(*http.Request, *http.Response) (*http.Response, error){lost, unavailable(503, "0")}
	_, err = r.providers.CreateOAuth2(t.Context(), oauth2Request(), client.WithValidateOnly())
	check(err)
	if keys := slices.Compact(r.wire.keys[5:]); len(r.wire.keys) != 8 || len(keys) != 1 {
		t.Errorf("keys are %q", r.wire.keys)
	}
}
