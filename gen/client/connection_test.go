package client_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

// A request without a complete response is an error of net/http, which quotes neither the token nor the password of the
// URL, and which IsTemporary judges. Permanent ones are tried once.
func TestFailedConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start   func(*httptest.Server)
		handler http.HandlerFunc
		// scheme is that of the base URL.
		scheme  string
		says    string
		mayPass bool
	}{
		"HTTPS to an HTTP port": {
			(*httptest.Server).Start, answering(http.StatusCreated, "", ""), "https", "HTTP response to HTTPS client", false,
		},
		"untrusted certificate": {
			(*httptest.Server).StartTLS, answering(http.StatusCreated, "", ""), "https", "unknown authority", false,
		},
		"malformed response": {(*httptest.Server).Start, func(w http.ResponseWriter, r *http.Request) {
			connection, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = connection.Write([]byte("HTTP/1.1 200 OK\r\nhunter2 " + r.Header.Get("Authorization") + "\r\n\r\n"))
			_ = connection.Close()
		}, "http", "the response is not HTTP", false},
		"lost": {
			(*httptest.Server).Start, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "http", "EOF", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startStranger(t, c.start, c.handler)
			_, address, _ := strings.Cut(server.URL, "://")
			server.URL = c.scheme + "://user:hunter2@" + address
			_, err := server.create(t, client.WithRetries(map[bool]int{false: client.DefaultRetries}[c.mayPass]))
			if err == nil || !strings.Contains(err.Error(), c.says) || client.IsTemporary(err) != c.mayPass {
				t.Errorf("error is %v", err)
			}
			server.expectOneTry(t)
		})
	}
}
