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
func newStranger(t *testing.T, handler http.HandlerFunc, options ...client.CreateOption) *stranger {
	t.Helper()
	s := startStranger(t, (*httptest.Server).Start, handler)
	s.options = options
	return s
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

// withHeader returns a handler that adds a header field to the response of another.
func withHeader(name, value string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add(name, value)
		next(w, r)
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
	if err != nil && (strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 4096) {
		t.Errorf("the error quotes too much: %.5000s", err)
	}
	return record, err
}

// expectRefusal checks that a create is refused with a text, after one try.
func (s *stranger) expectRefusal(t *testing.T, text string, options ...client.Option) {
	t.Helper()
	record, err := s.create(t, options...)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("record is %v, error is %v; want %q", record, err, text)
	}
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
