package client_test

import (
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
func trusting(at time.Time) func(*stranger) client.Option {
	return func(server *stranger) client.Option {
		config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		config.Time = func() time.Time { return at }
		return client.WithDoer(&http.Client{Transport: &http.Transport{TLSClientConfig: config}})
	}
}

// option returns an option that does not depend on a server.
func option(option client.Option) func(*stranger) client.Option {
	return func(*stranger) client.Option { return option }
}

// wraps reports whether an error has a cause of a type.
func wraps[Cause error](err error) bool {
	_, ok := errors.AsType[Cause](err)
	return ok
}

// Each connection error is one sentence with the URL, what was found, and what to do. It wraps its cause, and so the
// refusal of an HTTPS port. Permanent ones are tried once.
func TestConnectionErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	plain, encrypted := (*httptest.Server).Start, (*httptest.Server).StartTLS
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	created := answering(http.StatusCreated, "application/json", "{}")
	nginx := answering(http.StatusBadRequest, "text/html", "<title>400 The plain HTTP request was sent to HTTPS port</title>")
	proxy, err := url.Parse(closedURL)
	if err != nil {
		t.Fatal(err)
	}
	const refused = "nothing accepts connections at http://HOST (connection refused); start the server, or check the host and the port"
	for name, c := range map[string]struct {
		// start starts a server with the handler; nil if there is none.
		start   func(*httptest.Server)
		handler http.HandlerFunc
		// url is the base URL. In it and in says, the error, HOST is the server's host and port and PORT its port.
		url    string
		option func(*stranger) client.Option
		says   string
		// isTimeout and mayPass are what Timeout and Temporary report.
		isTimeout, mayPass bool
		hasCause           func(error) bool
	}{
		"HTTP to an HTTPS port": {
			start: encrypted, handler: created, url: "http://HOST", hasCause: wraps[*client.Error],
			says: "the server at http://HOST expects HTTPS; use https://HOST",
		},
		"HTTP to the HTTPS port of nginx": {
			start: plain, handler: nginx, url: "http://HOST", hasCause: wraps[*client.Error],
			says: "the server at http://HOST expects HTTPS; use https://HOST",
		},
		"HTTPS to an HTTP port": {
			start: plain, handler: created, url: "https://HOST",
			says: "the server at https://HOST does not speak HTTPS; use http://HOST, or enable TLS on the server",
		},
		"untrusted certificate": {
			start: encrypted, handler: created, url: "https://HOST", hasCause: wraps[*tls.CertificateVerificationError],
			says: "the certificate of https://HOST is not trusted (x509: certificate signed by unknown authority); " +
				"set SSL_CERT_FILE to a PEM file with the certificate of its issuer",
		},
		"certificate of another host": {
			start: encrypted, handler: created, url: "https://localhost:PORT", option: trusting(time.Now()),
			says: "the certificate of https://localhost:PORT is not for this host (x509: certificate is valid for " +
				"example.com, *.example.com, not localhost); use a host that it names, or install one for this host",
		},
		"expired certificate": {
			start: encrypted, handler: created, url: "https://HOST", option: trusting(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)),
			says: "the certificate of https://HOST is expired or not yet valid (x509: certificate has expired or is not yet " +
				"valid: current time 2100-01-01T00:00:00Z is after 2084-01-29T16:00:00Z); renew it, or set the clock",
		},
		"wrong path": {
			start: plain, handler: answering(http.StatusNotFound, "text/html", "hunter2"), url: "http://HOST/elsewhere/api/v3/",
			says: "there is no providerd API at http://HOST/elsewhere/api/v3 (404 Not Found); check the path /elsewhere, or use http://HOST",
		},
		"another server": {
			start: plain, handler: answering(http.StatusMethodNotAllowed, "text/html", "hunter2"), url: "http://HOST",
			says: "there is no providerd API at http://HOST/api/v3 (405 Method Not Allowed); check the host and the port",
		},
		"refused":         {url: closedURL, mayPass: true, says: refused},
		"user in the URL": {url: "http://hunter2:hunter2@127.0.0.1:1", mayPass: true, says: refused},
		"unknown host": {
			url: "http://unknown.invalid", option: option(client.WithDoer(doerFunc(dialing(&net.DNSError{IsNotFound: true})))),
			says: "the host of http://unknown.invalid is unknown; check its name and DNS",
		},
		"proxy": {
			url: "http://example.com", mayPass: true,
			option: option(client.WithDoer(&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}})),
			says: "cannot connect to the proxy for http://HOST (proxyconnect tcp: dial tcp " + proxy.Host +
				": connect: connection refused); check HTTPS_PROXY, HTTP_PROXY and NO_PROXY",
		},
		"timeout": {
			start: plain, handler: silent, url: "http://HOST", option: option(client.WithTryTimeout(50 * time.Millisecond)),
			isTimeout: true, mayPass: true,
			says: "no complete response from http://HOST within 50ms; " +
				"check the server and the network, or allow more time with WithTryTimeout",
		},
		"timeout of the doer": {
			url: "http://example.com", option: option(client.WithDoer(doerFunc(breaks(os.ErrDeadlineExceeded)))),
			isTimeout: true, mayPass: true,
			says: "the connection to http://HOST timed out (i/o timeout); check the server and the network",
		},
		"lost": {
			start: plain, handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			url: "http://HOST", mayPass: true,
			says: "the connection to http://HOST failed: EOF; check the server and the network",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &stranger{Server: &httptest.Server{URL: c.url}}
			if c.start != nil {
				server = startStranger(t, c.start, c.handler)
			}
			found, _ := url.Parse(server.URL)
			server.URL = strings.NewReplacer("HOST", found.Host, "PORT", found.Port()).Replace(c.url)
			var options []client.Option
			if c.option != nil {
				options = append(options, c.option(server))
			}
			if c.mayPass {
				options = append(options, client.WithRetries(0))
			}
			_, err := server.create(t, options...)
			says := strings.NewReplacer("HOST", found.Host, "PORT", found.Port()).Replace(c.says)
			if err == nil || err.Error() != "create provider: "+says || c.hasCause != nil && !c.hasCause(err) {
				t.Errorf("error is %#v %v\nwant %s", err, err, says)
			}
			base, _ := url.Parse(server.URL)
			if lost, ok := errors.AsType[*client.ConnectionError](err); ok && (lost.Timeout() != c.isTimeout ||
				lost.Temporary() != c.mayPass || lost.URL != base.Scheme+"://"+base.Host || lost.Found+"; "+lost.Remedy != says) {
				t.Errorf("error is %+v", lost)
			}
			if c.start != nil {
				server.expectOneTry(t)
			}
		})
	}
}
