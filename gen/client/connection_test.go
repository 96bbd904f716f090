package client_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/providerd/gen/client"
)

// trusting returns an HTTP client that trusts a server and whose clock shows a time.
func trusting(at time.Time) func(*stranger) client.Option {
	return func(server *stranger) client.Option {
		config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		config.Time = func() time.Time { return at }
		return client.WithDoer(&http.Client{Transport: &http.Transport{TLSClientConfig: config}})
	}
}

// A request without a complete response is an error of net/http, which quotes neither the token nor the password of the
// URL, and which IsTemporary judges. Permanent ones are tried once.
func TestFailedConnections(t *testing.T) {
	t.Parallel()
	plain, encrypted := (*httptest.Server).Start, (*httptest.Server).StartTLS
	created := answering(http.StatusCreated, "application/json", "{}")
	for name, c := range map[string]struct {
		// start starts a server with the handler; nil if there is none.
		start   func(*httptest.Server)
		handler http.HandlerFunc
		// url is the base URL, in which HOST is the server's host and port.
		url     string
		option  func(*stranger) client.Option
		says    string
		mayPass bool
	}{
		"HTTP to an HTTPS port": {start: encrypted, handler: created, url: "http://HOST", says: "400 Bad Request"},
		"HTTPS to an HTTP port": {start: plain, handler: created, url: "https://HOST", says: "HTTP response to HTTPS client"},
		"untrusted certificate": {start: encrypted, handler: created, url: "https://HOST", says: "unknown authority"},
		"expired certificate": {
			start: encrypted, handler: created, url: "https://HOST", says: "certificate has expired or is not yet valid",
			option: trusting(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)),
		},
		"wrong path": {
			start: plain, handler: answering(http.StatusNotFound, "text/html", "hunter2"), url: "http://HOST/elsewhere",
			says: "404 Not Found",
		},
		// Nothing listens on this port, which no test gets, because it is reserved.
		"refused": {url: "http://user:hunter2@127.0.0.1:1", mayPass: true, says: "connection refused"},
		"malformed response": {
			start: plain, url: "http://HOST", says: "the response is not HTTP",
			handler: func(w http.ResponseWriter, r *http.Request) {
				connection, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				_, _ = connection.Write([]byte("HTTP/1.1 200 OK\r\nhunter2 " + r.Header.Get("Authorization") + "\r\n\r\n"))
				_ = connection.Close()
			},
		},
		"lost": {
			start: plain, handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			url: "http://HOST", mayPass: true, says: "EOF",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &stranger{Server: &httptest.Server{URL: c.url}}
			if c.start != nil {
				server = startStranger(t, c.start, c.handler)
			}
			found, _ := url.Parse(server.URL)
			server.URL = strings.ReplaceAll(c.url, "HOST", found.Host)
			var options []client.Option
			if c.option != nil {
				options = append(options, c.option(server))
			}
			if c.mayPass {
				options = append(options, client.WithRetries(0))
			}
			_, err := server.create(t, options...)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") ||
				client.IsTemporary(err) != c.mayPass {
				t.Errorf("error is %v", err)
			}
			if c.start != nil {
				server.expectOneTry(t)
			}
		})
	}
}
