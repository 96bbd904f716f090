package client_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

const (
	secretToken = "pvd_hunter2"
	// recordText has the fields of a record that the SDK checks.
	recordText = `{"pk": %s, "name": "hunter2", "meta_model_name": "providers_oauth2.oauth2provider"}`
)

// stranger is a server that is not providerd.
type stranger struct {
	*httptest.Server
	connections, requests atomic.Int64
	// options are those of creates.
	options []client.CreateOption
}

// newStranger starts a stranger without TLS.
func newStranger(t *testing.T, handler http.HandlerFunc) *stranger {
	t.Helper()
	return startStranger(t, (*httptest.Server).Start, handler)
}

func startStranger(t *testing.T, start func(*httptest.Server), handler http.HandlerFunc) *stranger {
	t.Helper()
	s := &stranger{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		handler(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	start(s.Server)
	t.Cleanup(s.Close)
	return s
}

// answering returns a handler with a fixed response.
func answering(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// sending returns a handler that sends a text instead of an HTTP response.
func sending(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if connection, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_, _ = io.WriteString(connection, text)
			_ = connection.Close()
		}
	}
}

func redirecting(status int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}
}

// providers returns Providers of the server.
func (s *stranger) providers(t *testing.T, options ...client.Option) *client.Providers {
	t.Helper()
	providers, err := client.New(s.URL, secretToken, options...)
	processtest.Must(t, err)
	return providers
}

// create sends a create and returns its error, which must quote neither the token nor the response.
func (s *stranger) create(t *testing.T, options ...client.Option) (*client.OAuth2Provider, error) {
	t.Helper()
	record, err := s.providers(t, options...).CreateOAuth2(t.Context(), oauth2Request(), s.options...)
	processtest.Expect(t, err == nil || !strings.Contains(err.Error(), "hunter2") && len(err.Error()) <= 4096,
		"the error quotes too much: %.5000s", err)
	return record, err
}

// expectRefusal checks that a create is refused with a text, after one try.
func (s *stranger) expectRefusal(t *testing.T, text string, options ...client.Option) {
	t.Helper()
	record, err := s.create(t, options...)
	processtest.Expect(t, err != nil && strings.Contains(err.Error(), text),
		"record is %v, error is %v; want %q", record, err, text)
	s.expectOneTry(t)
}

func (s *stranger) expectOneTry(t *testing.T) {
	t.Helper()
	if connections, requests := s.connections.Load(), s.requests.Load(); connections != 1 || requests > 1 {
		t.Errorf("%d connections and %d requests, want one try", connections, requests)
	}
}

// doerFunc is a doer that is not an http.Client, and the transport of one.
type doerFunc func(*http.Request) (*http.Response, error)

func (f doerFunc) Do(request *http.Request) (*http.Response, error) { return f(request) }

func (f doerFunc) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// A request without a complete response is an error of net/http, which quotes neither the token nor the password of the
// URL, and which IsTemporary judges. Permanent ones are tried once.
func TestFailedConnections(t *testing.T) {
	t.Parallel()
	created, lost := answering(http.StatusCreated, "", ""), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	malformed := sending("HTTP/1.1 200 OK\r\nhunter2 Bearer " + secretToken + "\r\n\r\n")
	for name, c := range map[string]struct {
		server       *stranger
		scheme, says string
		mayPass      bool
	}{
		"HTTPS to an HTTP port": {newStranger(t, created), "https", "HTTP response to HTTPS client; if it is the intended server, use http://127.0.0.1:", false},
		"HTTP to an HTTPS port": {startStranger(t, (*httptest.Server).StartTLS, created), "http", "The server uses TLS.", false},
		"untrusted certificate": {startStranger(t, (*httptest.Server).StartTLS, created), "https", "unknown authority", false},
		"malformed response":    {newStranger(t, malformed), "http", "the response is not HTTP", false},
		"lost":                  {newStranger(t, lost), "http", "EOF", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, address, _ := strings.Cut(c.server.URL, "://")
			c.server.URL = c.scheme + "://user:hunter2@" + address
			_, err := c.server.create(t, client.WithRetries(map[bool]int{false: client.DefaultRetries}[c.mayPass]))
			processtest.Expect(t, err != nil && strings.Contains(err.Error(), c.says) && client.IsTemporary(err) == c.mayPass,
				"error is %v", err)
			c.server.expectOneTry(t)
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	none := func(http.ResponseWriter, *http.Request) {}
	plain, encrypted := newStranger(t, none), startStranger(t, (*httptest.Server).StartTLS, none)
	otherName := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for _, target := range []string{plain.URL, encrypted.URL, otherName} {
			scheme, host, _ := strings.Cut(target, "://")
			location := scheme + "://user:hunter2@" + host + "/hunter2?code=hunter2#hunter2"
			for _, options := range [][]client.Option{
				nil, {client.WithDoer(encrypted.Client())}, {client.WithDoer(doerFunc(http.DefaultTransport.RoundTrip))},
			} {
				newStranger(t, redirecting(status, location)).expectRefusal(t, "redirects to "+host+".", options...)
			}
		}
	}
	if seen := plain.requests.Load() + encrypted.requests.Load(); seen != 0 {
		t.Errorf("the targets saw %d requests", seen)
	}
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
