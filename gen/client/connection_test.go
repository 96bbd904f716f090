package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/providerd/gen/client"
)

// closedURL is the URL of a port on which nothing listens and which no test gets, because it is reserved.
const closedURL = "http://127.0.0.1:1"

// trusting returns an HTTP client that trusts a server and whose clock shows a time.
func trusting(server *stranger, at time.Time) client.Option {
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.Time = func() time.Time { return at }
	return client.WithDoer(&http.Client{Transport: &http.Transport{TLSClientConfig: config}})
}

// Each connection error is one sentence with the URL, what was found, and what to do. Permanent ones are tried once.
func TestConnectionErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	created := answering(http.StatusCreated, "application/json", "{}")
	start, startTLS := (*httptest.Server).Start, (*httptest.Server).StartTLS
	proxy, err := url.Parse(closedURL)
	if err != nil {
		t.Fatal(err)
	}
	as := func(scheme string) func(string) string {
		return func(url string) string { return strings.Replace(url, "http", scheme, 1) }
	}
	page := func(text string) http.HandlerFunc { return answering(http.StatusBadRequest, "text/html", text) }
	for name, c := range map[string]struct {
		start   func(*httptest.Server)
		handler http.HandlerFunc
		baseURL func(url string) string
		options func(*stranger) []client.Option
		// says is the error, with HOST for the server's host and port and PORT for its port.
		says              string
		timeout, mayPass  bool
		isNotSentAnything bool
	}{
		"HTTP to an HTTPS port": {
			start: startTLS, handler: created, baseURL: func(url string) string { return strings.Replace(url, "https", "http", 1) },
			says: "the server at http://HOST expects HTTPS; use https://HOST",
		},
		"HTTP to the HTTPS port of nginx": {
			start: start, handler: page("<title>400 The plain HTTP request was sent to HTTPS port</title>"),
			says: "the server at http://HOST expects HTTPS; use https://HOST",
		},
		"HTTPS to an HTTP port": {
			start: start, handler: created, baseURL: as("https"),
			says: "the server at https://HOST does not speak HTTPS; use http://HOST, or enable TLS on the server",
		},
		"untrusted certificate": {
			start: startTLS, handler: created,
			says: "the certificate of https://HOST is not trusted (x509: certificate signed by unknown authority); " +
				"set SSL_CERT_FILE to a PEM file with the certificate of its issuer",
		},
		"certificate of another host": {
			start: startTLS, handler: created,
			baseURL: func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) },
			options: func(s *stranger) []client.Option { return []client.Option{trusting(s, time.Now())} },
			says: "the certificate of https://localhost:PORT is not for this host (x509: certificate is valid for " +
				"example.com, *.example.com, not localhost); use a host that it names, or install one for this host",
		},
		"expired certificate": {
			start: startTLS, handler: created,
			options: func(s *stranger) []client.Option {
				return []client.Option{trusting(s, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))}
			},
			says: "the certificate of https://HOST is expired or not yet valid (x509: certificate has expired or is not yet " +
				"valid: current time 2100-01-01T00:00:00Z is after 2084-01-29T16:00:00Z); renew it, or set the clock",
		},
		"wrong path": {
			start: start, handler: answering(http.StatusNotFound, "text/html", "hunter2"),
			baseURL: func(url string) string { return url + "/elsewhere/api/v3/" },
			says: "there is no providerd API at http://HOST/elsewhere/api/v3 (404 Not Found); " +
				"check the path /elsewhere, or use http://HOST",
		},
		"another server": {
			start: start, handler: answering(http.StatusMethodNotAllowed, "text/html", "hunter2"),
			says: "there is no providerd API at http://HOST/api/v3 (405 Method Not Allowed); check the host and the port",
		},
		"refused": {
			baseURL: func(string) string { return closedURL }, isNotSentAnything: true, mayPass: true,
			says: "nothing accepts connections at http://HOST (connection refused); start the server, or check the host and the port",
		},
		"user in the URL": {
			baseURL:           func(string) string { return strings.Replace(closedURL, "//", "//hunter2:hunter2@", 1) },
			isNotSentAnything: true, mayPass: true,
			says: "nothing accepts connections at http://HOST (connection refused); start the server, or check the host and the port",
		},
		"unknown host": {
			baseURL: func(string) string { return "http://unknown.invalid" }, isNotSentAnything: true,
			options: func(*stranger) []client.Option {
				return []client.Option{client.WithDoer(doerFunc(dialing(&net.DNSError{IsNotFound: true})))}
			},
			says: "the host of http://unknown.invalid is unknown; check its name and DNS",
		},
		"proxy": {
			start: start, handler: created, isNotSentAnything: true, mayPass: true,
			options: func(*stranger) []client.Option {
				return []client.Option{client.WithDoer(&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}})}
			},
			says: "cannot connect to the proxy for http://HOST (proxyconnect tcp: dial tcp " + proxy.Host +
				": connect: connection refused); check HTTPS_PROXY, HTTP_PROXY and NO_PROXY",
		},
		"timeout": {
			start: start, handler: silent, timeout: true, mayPass: true,
			options: func(*stranger) []client.Option { return []client.Option{client.WithTryTimeout(50 * time.Millisecond)} },
			says: "no complete response from http://HOST within 50ms; " +
				"check the server and the network, or allow more time with WithTryTimeout",
		},
		"timeout of the doer": {
			start: start, handler: silent, timeout: true, mayPass: true, isNotSentAnything: true,
			options: func(*stranger) []client.Option {
				return []client.Option{client.WithDoer(doerFunc(breaks(os.ErrDeadlineExceeded)))}
			},
			says: "the connection to http://HOST timed out (i/o timeout); check the server and the network",
		},
		"lost": {
			start: start, mayPass: true, handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			says: "the connection to http://HOST failed: EOF; check the server and the network",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &stranger{Server: &httptest.Server{}}
			if c.start != nil {
				server = newStranger(t, c.start, c.handler)
			}
			options := []client.Option{}
			if c.options != nil {
				options = c.options(server)
			}
			if c.baseURL != nil {
				server.URL = c.baseURL(server.URL)
			}
			if c.mayPass {
				options = append(options, client.WithRetries(0))
			}
			_, err := server.create(t, options...)
			base, _ := url.Parse(server.URL)
			says := strings.NewReplacer("HOST", base.Host, "PORT", base.Port()).Replace(c.says)
			if err == nil || err.Error() != "create provider: "+says {
				t.Errorf("error is %v\nwant %s", err, says)
			}
			if lost, ok := errors.AsType[*client.ConnectionError](err); ok && (lost.Timeout() != c.timeout ||
				lost.Temporary() != c.mayPass || lost.URL != base.Scheme+"://"+base.Host) {
				t.Errorf("error is %+v", lost)
			}
			if connections := server.connections.Load(); !c.isNotSentAnything && connections != 1 {
				t.Errorf("%d connections, want 1", connections)
			}
		})
	}
}

// An error wraps its cause, and so the refusal of an HTTPS port.
func TestConnectionErrorsHaveTheirCauses(t *testing.T) {
	t.Parallel()
	created := answering(http.StatusCreated, "application/json", "{}")
	encrypted := newStranger(t, (*httptest.Server).StartTLS, created)
	_, err := encrypted.create(t)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("error is %v", err)
	}
	encrypted.URL = strings.Replace(encrypted.URL, "https", "http", 1)
	_, err = encrypted.create(t)
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Type != client.TypeForeign || refused.Status != 400 {
		t.Errorf("error is %v", err)
	}
}

// The end of the caller's context is not a ConnectionError.
func TestCallersTimeIsNoConnectionError(t *testing.T) {
	t.Parallel()
	providers, err := client.New("http://example.com", "t", client.WithDoer(doerFunc(
		func(request *http.Request) (*http.Response, error) { return nil, request.Context().Err() })))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = providers.CreateOAuth2(ctx, oauth2Request())
	if _, ok := errors.AsType[*client.ConnectionError](err); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
