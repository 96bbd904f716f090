package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"example.com/providerd/gen/client"
)

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
}

func TestContextEndsWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.wire.instead = []func(*http.Request, *http.Response) (*http.Response, error){
		func(request *http.Request, response *http.Response) (*http.Response, error) {
			time.AfterFunc(10*time.Millisecond, cancel)
			return unavailable(http.StatusServiceUnavailable, "60")(request, response)
		},
	}
	_, err := r.providers.CreateOAuth2(ctx, oauth2Request())
	var refused *client.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &refused) {
		t.Errorf("error is %v, want both the end of the context and the refusal", err)
	}
}
