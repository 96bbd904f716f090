package client

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// Bounds of the default HTTP client.
const (
	maxHeaderBytes = 64 << 10
	// maxIdleConns is for callers that create many providers at a time; each has a connection of its own.
	maxIdleConns = 256
	// idleTimeout is shorter than that of a providerd server, so that no request meets a connection that is just closed.
	idleTimeout = 15 * time.Second
)

// maxHost is how many bytes of a redirect's host are told: a name of DNS and a port.
const maxHost = 262

// withoutRedirects makes an HTTP client follow no redirects: a caller's, or the default where there is none. It can do
// nothing about a doer that is no *http.Client.
func withoutRedirects(doer HttpRequestDoer) HttpRequestDoer {
	switch doer := doer.(type) {
	case nil:
		return &http.Client{Transport: stopsAtRedirects{newTransport()}}
	case *http.Client:
		copied := *doer
		copied.Transport = stopsAtRedirects{cmp.Or(doer.Transport, http.DefaultTransport)}
		return &copied
	default:
		return doer
	}
}

// newTransport speaks HTTP/1.1 alone, as the server does: the errors of a lost connection of HTTP/2 cannot be told from
// others.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		Protocols:              protocols,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// stopsAtRedirects makes a redirect an error before the http.Client sees it. CheckRedirect would come too late for the
// error of a Location that cannot be read, which has all of it.
type stopsAtRedirects struct{ http.RoundTripper }

// RoundTrip carries out one request.
func (s stopsAtRedirects) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // The http.Client looks at it.
	}
	if err := refusedUnread(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// CloseIdleConnections closes those of the transport, where it has such a method (http.Client).
func (s stopsAtRedirects) CloseIdleConnections() {
	if closer, ok := s.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// refusedUnread is the error of an answer whose body is not looked at: a redirect, and a switch to another protocol,
// which would be read without the bound on time.
func refusedUnread(response *http.Response) error {
	switch {
	case response.StatusCode < http.StatusOK:
		return foreignAnswer(response, "The answer is none to a create. Is this a providerd server?")
	case response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest:
		return foreignAnswer(response, fmt.Sprintf("The server redirects to %s. No redirect is followed, since the token "+
			"and the secrets are for this server alone; use the address of the one that is meant.", redirectHost(response)))
	default:
		return nil
	}
}

// redirectHost is the host of a redirect's target, with its port. The rest of the target may have secrets.
func redirectHost(response *http.Response) string {
	target, err := response.Location()
	if err != nil || target.Host == "" {
		return "an unknown host"
	}
	return legible(target.Host, maxHost)
}
