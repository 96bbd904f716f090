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
	plain, encrypted := newStranger(t, none), startStranger(t, (*httptest.Server).StartTLS, none)
	otherName := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for _, target := range []string{plain.URL, encrypted.URL, otherName} {
			for name, options := range map[string][]client.Option{
				"default": nil,
				"client":  {client.WithDoer(encrypted.Client())},
				"doer":    {client.WithDoer(doerFunc(http.DefaultTransport.RoundTrip))},
			} {
				t.Run(fmt.Sprint(status, target, name), func(t *testing.T) {
					t.Parallel()
					scheme, host, _ := strings.Cut(target, "://")
					from := newStranger(t, redirecting(status, scheme+"://user:hunter2@"+host+"/hunter2?code=hunter2#hunter2"))
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
		newStranger(t, redirecting(http.StatusTemporaryRedirect, location)).expectRefusal(t, host)
	}
}
