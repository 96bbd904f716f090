package client

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// Limits of the default HTTP client.
const (
	maxHeaderBytes = 64 << 10
	// maxIdleConns is for callers that create many providers concurrently, each on its own connection.
	maxIdleConns = 256
	// idleTimeout is shorter than that of a providerd server, so that no request uses a connection that is being closed.
	idleTimeout = 15 * time.Second
)

// maxHost is the most bytes of a redirect's host that an error quotes: a DNS name and a port.
const maxHost = 262

// withoutRedirects returns the caller's HTTP client, or the default one, so that it does not follow redirects. It
// returns a doer that is not an *http.Client unchanged.
func withoutRedirects(doer HttpRequestDoer) HttpRequestDoer {
	switch doer := doer.(type) {
	case nil:
		return &http.Client{Transport: redirectRefuser{newTransport()}}
	case *http.Client:
		copied := *doer
		copied.Transport = redirectRefuser{cmp.Or(doer.Transport, http.DefaultTransport)}
		return &copied
	default:
		return doer
	}
}

// newTransport returns a transport for HTTP/1.1 only, which is what the server speaks. With HTTP/2, the errors of lost
// connections cannot be distinguished from others.
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

// redirectRefuser turns a redirect into an error before the http.Client sees it. CheckRedirect is called too late to
// prevent an error that quotes the whole Location if that is invalid.
type redirectRefuser struct{ http.RoundTripper }

// RoundTrip performs one request.
func (s redirectRefuser) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // The http.Client inspects it.
	}
	if err := unreadError(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// CloseIdleConnections closes idle connections if the transport has such a method (http.Client).
func (s redirectRefuser) CloseIdleConnections() {
	if closer, ok := s.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// unreadError returns the error of a response whose body is not read: a redirect, or a switch to another protocol,
// which would be read without a timeout.
func unreadError(response *http.Response) error {
	switch {
	case response.StatusCode < http.StatusOK:
		return foreignResponse(response, "The response is not one to a create. Is this a providerd server?")
	case response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest:
		return foreignResponse(response, fmt.Sprintf("The server redirects to %s. Redirects are not followed, because "+
			"the token and the secrets are for this server only. Use the URL of the intended server.", redirectHost(response)))
	default:
		return nil
	}
}

// redirectHost returns the host and port of a redirect's target. The rest of the target may contain secrets.
func redirectHost(response *http.Response) string {
	target, err := response.Location()
	if err != nil || target.Host == "" {
		return "an unknown host"
	}
	return legible(target.Host, maxHost)
}
