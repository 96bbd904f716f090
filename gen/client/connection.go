package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// maxReason is the most bytes of a network error that an error quotes.
const maxReason = 300

// ConnectionError reports that a server gave no usable response: it was not reached, does not speak the protocol of the
// URL, is not trusted, or took too long. It wraps Err.
type ConnectionError struct {
	// URL is the scheme, host and port of the server.
	URL string
	// Found is what happened, with the URL; Remedy is what to do about it.
	Found, Remedy string
	// Err is the cause.
	Err error
}

// Error returns one sentence of at most about 1 KiB: what happened, and what to do about it.
func (e *ConnectionError) Error() string { return e.Found + "; " + e.Remedy }

// Unwrap returns the cause.
func (e *ConnectionError) Unwrap() error { return e.Err }

// Timeout reports whether a try took too long.
func (e *ConnectionError) Timeout() bool {
	late, ok := errors.AsType[net.Error](e.Err)
	return ok && late.Timeout() || errors.Is(e.Err, context.DeadlineExceeded)
}

// Temporary reports whether the same request may succeed later. That is so after a timeout or a lost or refused
// connection, but not after a TLS error or with a wrong URL.
func (e *ConnectionError) Temporary() bool { return isTemporary(e.Err) }

// origin returns the scheme and host of a URL, without the user.
func origin(of *url.URL) string { return of.Scheme + "://" + of.Host }

// timedOut returns the error of a try that exceeded its timeout.
func timedOut(server *url.URL, after time.Duration, err error) *ConnectionError {
	return &ConnectionError{
		URL:    origin(server),
		Found:  fmt.Sprintf("no complete response from %s within %s", origin(server), after),
		Remedy: "check the server and the network, or allow more time with WithTryTimeout",
		Err:    errors.Join(context.DeadlineExceeded, err),
	}
}

// connectionError returns the error of a request without a complete response.
func connectionError(server *url.URL, err error) *ConnectionError {
	reason := err
	if request, ok := errors.AsType[*url.Error](err); ok {
		reason = request.Err // The rest is the method and the URL.
	}
	e := &ConnectionError{URL: origin(server), Err: err}
	e.Found, e.Remedy = describe(e, legible(reason.Error(), maxReason))
	return e
}

func describe(of *ConnectionError, reason string) (found, remedy string) {
	dial, _ := errors.AsType[*net.OpError](of.Err)
	unresolved, isUnresolved := errors.AsType[*net.DNSError](of.Err)
	_, isNotTLS := errors.AsType[tls.RecordHeaderError](of.Err)
	switch {
	case dial != nil && dial.Op == "proxyconnect":
		return fmt.Sprintf("cannot connect to the proxy for %s (%s)", of.URL, reason),
			"check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
	case isUnresolved && unresolved.IsNotFound:
		return fmt.Sprintf("the host of %s is unknown", of.URL), "check its name and DNS"
	case errors.Is(of.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing accepts connections at %s (connection refused)", of.URL),
			"start the server, or check the host and the port"
	case errors.Is(of.Err, http.ErrSchemeMismatch), isNotTLS:
		return fmt.Sprintf("the server at %s does not speak HTTPS", of.URL), fmt.Sprintf(
			"use http%s, or enable TLS on the server", strings.TrimPrefix(of.URL, "https"))
	case of.Timeout():
		return fmt.Sprintf("the connection to %s timed out (%s)", of.URL, reason), "check the server and the network"
	}
	if found, remedy = describeCertificate(of, reason); found != "" {
		return found, remedy
	}
	return fmt.Sprintf("the connection to %s failed: %s", of.URL, reason), "check the server and the network"
}

// describeCertificate describes certificate errors. For other errors, found is "".
func describeCertificate(of *ConnectionError, reason string) (found, remedy string) {
	reason = strings.TrimPrefix(reason, "tls: failed to verify certificate: ")
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](of.Err)
	_, isOfAnotherHost := errors.AsType[x509.HostnameError](of.Err)
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](of.Err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s is expired or not yet valid (%s)", of.URL, reason),
			"renew it, or set the clock"
	case isOfAnotherHost:
		return fmt.Sprintf("the certificate of %s is not for this host (%s)", of.URL, reason),
			"use a host that it names, or install one for this host"
	case isInvalid:
		return fmt.Sprintf("the certificate of %s is not valid (%s)", of.URL, reason), "install another one"
	case isUnknown:
		return fmt.Sprintf("the certificate of %s is not trusted (%s)", of.URL, reason),
			"set SSL_CERT_FILE to a PEM file with the certificate of its issuer"
	default:
		return "", ""
	}
}

// explain replaces the text of a refusal that comes from the wrong place, such as the port of another protocol, with a
// sentence that says which one is right. It returns other refusals unchanged.
func (p *Providers) explain(refused *Error, text []byte) error {
	isForeign := refused.Type == TypeForeign
	switch {
	case isForeign && refused.Status == http.StatusBadRequest && p.base.Scheme == "http" && wantsHTTPS(string(text)):
		server := origin(p.base)
		return &ConnectionError{
			URL:    server,
			Found:  fmt.Sprintf("the server at %s expects HTTPS", server),
			Remedy: "use https" + strings.TrimPrefix(server, "http"),
			Err:    refused,
		}
	case refused.Type == TypeNotFound, isForeign && refused.Status == http.StatusNotFound,
		isForeign && refused.Status == http.StatusMethodNotAllowed:
		shown := *p.base
		shown.User = nil
		refused.sentence = fmt.Sprintf("there is no providerd API at %s (%d %s); %s", strings.TrimRight(shown.String(), "/"),
			refused.Status, legible(refused.Title, maxReason), p.rightBase())
	}
	return refused
}

// wantsHTTPS reports whether a page is the response of an HTTPS port (of Go, nginx or Apache) to an HTTP request.
func wantsHTTPS(text string) bool {
	return strings.Contains(text, "HTTP request to an HTTPS server") || strings.Contains(text, "plain HTTP")
}

// rightBase says what to do if the API is not at the base URL.
func (p *Providers) rightBase() string {
	if prefix := strings.TrimRight(p.root().EscapedPath(), "/"); prefix != "" {
		return fmt.Sprintf("check the path %s, or use %s", prefix, origin(p.base))
	}
	return "check the host and the port"
}
