package client_test

import (
	"math"
	"testing"
	"time"

	"example.com/providerd/gen/client"
)

// The server accepts every duration and list of valid URIs that the helpers return.
func TestServerAcceptsDurationsAndRedirectURIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for length, want := range map[time.Duration]string{
		0:                                 "seconds=0",
		time.Nanosecond:                   "seconds=0.000000001",
		90 * time.Minute:                  "hours=1;minutes=30",
		time.Hour + 1500*time.Millisecond: "hours=1;seconds=1.5",
		720 * time.Hour:                   "hours=720",
		math.MaxInt64:                     "hours=2562047;minutes=47;seconds=16.854775807",
	} {
		request := oauth2Request()
		request.AccessTokenValidity = new(client.Duration(length))
		record, err := r.providers.CreateOAuth2(t.Context(), request)
		if err != nil || *request.AccessTokenValidity != want || record.AccessTokenValidity != want {
			t.Errorf("%s is %q, want %q: %v", length, *request.AccessTokenValidity, want, err)
		}
	}
	for want, uris := range map[string][]string{
		"":                               nil,
		"https://a.example/":             {"https://a.example/"},
		"https://a.example/\nmyapp:back": {"https://a.example/", "myapp:back"},
	} {
		request := oauth2Request()
		request.RedirectUris = new(client.RedirectURIs(uris...))
		if record, err := r.providers.CreateOAuth2(t.Context(), request); err != nil || record.RedirectUris != want {
			t.Errorf("%q: %v", uris, err)
		}
	}
}

func TestServerRefusesInvalidDurationsAndRedirectURIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, length := range []time.Duration{-1, -time.Second, -time.Hour, math.MinInt64} {
		request := oauth2Request()
		request.AccessTokenValidity = new(client.Duration(length))
		_, err := r.providers.CreateOAuth2(t.Context(), request)
		expectViolation(t, err, "/access_token_validity", "invalid_duration")
	}
	for _, uri := range []string{"https://a.example/\nhttps://b.example/", "https://a.example/\r\n", "a.example"} {
		request := oauth2Request()
		request.RedirectUris = new(client.RedirectURIs(uri, "https://c.example/"))
		_, err := r.providers.CreateOAuth2(t.Context(), request)
		expectViolation(t, err, "/redirect_uris", "invalid_uri")
	}
}
