package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	// maxIdleConns is for callers that create many providers concurrently, each on its own connection.
	maxIdleConns = 256
	// idleTimeout is shorter than a providerd server's, so that no request uses a connection that is being closed.
	idleTimeout = 15 * time.Second
)

// withoutRedirects returns the caller's HTTP client, or the default one, so that it does not follow redirects. It
// returns a doer that is not an *http.Client unchanged.
func withoutRedirects(doer HttpRequestDoer) HttpRequestDoer {
	given, ok := cmp.Or[HttpRequestDoer](doer, &http.Client{Transport: newTransport()}).(*http.Client)
	if !ok {
		return doer
	}
	copied := *given
	copied.Transport = redirectRefuser{cmp.Or(given.Transport, http.DefaultTransport)}
	return &copied
}

// newTransport returns a transport for HTTP/1.1 only, which is what the server speaks. With HTTP/2, the errors of lost
// connections cannot be distinguished from others.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, Protocols: protocols, MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost: maxIdleConns, IdleConnTimeout: idleTimeout,
	}
}

// redirectRefuser turns a redirect into an error before the http.Client sees it. CheckRedirect is called too late to
// prevent an error that quotes the whole Location if that is invalid.
type redirectRefuser struct{ http.RoundTripper }

// RoundTrip performs one request.
func (s redirectRefuser) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(request)
	if err != nil && strings.Contains(err.Error(), "broken: malformed") {
		// The error quotes the response, which may repeat the request.
		return nil, errors.New("the response is not HTTP; check the base URL")
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w; start the server, or check the base URL", err)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // The http.Client inspects it.
	}
	if err := unreadError(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// unreadError returns the error of a response whose body is not read: a redirect, or a switch to another protocol,
// which would be read without a timeout. Of the target of a redirect, which may contain secrets, it quotes the host.
func unreadError(response *http.Response) error {
	switch {
	case response.StatusCode < http.StatusOK:
		return foreignResponse(response, "This is not a response to a create. Check the base URL.")
	case response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest:
		host := "an unknown host"
		if target, err := response.Location(); err == nil && target.Host != "" {
			host = legible(target.Host, maxHost)
		}
		return foreignResponse(response, fmt.Sprintf("The server redirects to %s. Redirects are not followed, because "+
			"the token and the secrets are for this server only. Use the URL of the intended server.", host))
	}
	return nil
}
