package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	none := func(http.ResponseWriter, *http.Request) {}
	plain := newStranger(t, (*httptest.Server).Start, none)
	encrypted := newStranger(t, (*httptest.Server).StartTLS, none)
	otherName := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)
	doers := map[string][]client.Option{
		"default": nil,
		"client":  {client.WithDoer(encrypted.Client())},
		"doer":    {client.WithDoer(doerFunc(http.DefaultTransport.RoundTrip))},
	}
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for _, target := range []string{plain.URL, encrypted.URL, otherName} {
			for name, options := range doers {
				t.Run(fmt.Sprint(status, target, name), func(t *testing.T) {
					t.Parallel()
					scheme, host, _ := strings.Cut(target, "://")
					from := newStranger(t, (*httptest.Server).Start, func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Location", scheme+"://user:hunter2@"+host+"/hunter2?code=hunter2#hunter2")
						w.WriteHeader(status)
					})
					from.expectRefusal(t, "redirects to "+host+".", options...)
				})
			}
		}
	}
	t.Cleanup(func() {
		if seen := plain.requests.Load() + encrypted.requests.Load(); seen != 0 {
			t.Errorf("the targets saw %d requests", seen)
		}
	})
}

// Errors quote only the host of a redirect, without control characters and up to a limit.
func TestRedirectErrorsQuoteHostOnly(t *testing.T) {
	t.Parallel()
	for location, host := range map[string]string{
		"":                                    "an unknown host.",
		"/hunter2":                            "127.0.0.1:",
		"?hunter2":                            "127.0.0.1:",
		"//other.example/hunter2":             "other.example.",
		"http://[hunter2":                     "an unknown host.",
		"http://a.example:hunter2":            "an unknown host.",
		"http://%zz/hunter2":                  "an unknown host.",
		"data:hunter2":                        "an unknown host.",
		"https://a%E2%80%AEb.example/hunter2": "a\uFFFDb.example.",
		"https://" + strings.Repeat("a", 9_000) + ".example": "aaaa…",
	} {
		t.Run(fmt.Sprintf("%.30s", location), func(t *testing.T) {
			t.Parallel()
			from := newStranger(t, (*httptest.Server).Start, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusTemporaryRedirect)
			})
			from.expectRefusal(t, host)
		})
	}
}
