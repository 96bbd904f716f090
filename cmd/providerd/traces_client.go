package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"
)

// collectorIdleTimeout is how long a connection to the collector stays open without being used.
const collectorIdleTimeout = 90 * time.Second

// newCollectorClient makes the client that reaches a collector by a scheme. The exporter's own would follow redirects,
// and so hand the key of the collector, which may be in a header of any name, to another host.
func newCollectorClient(scheme string) (*http.Client, error) {
	security, err := collectorSecurity(scheme)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: security, ForceAttemptHTTP2: true,
			IdleConnTimeout: collectorIdleTimeout,
		},
		Timeout:       exportTimeout(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// collectorSecurity reads which certificates the collector is trusted by, and which one it is shown.
func collectorSecurity(scheme string) (*tls.Config, error) {
	authorities, certificate, key := ofTraces("CERTIFICATE"), ofTraces("CLIENT_CERTIFICATE"), ofTraces("CLIENT_KEY")
	for _, name := range []string{authorities, certificate, key} {
		if variable(name) != "" && scheme == schemeHTTP {
			return nil, fmt.Errorf("%s is set, but the endpoint is http; set that to https, or unset the variable", name)
		}
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if variable(authorities) != "" {
		text, err := readNamed(authorities)
		if err != nil {
			return nil, err
		}
		security.RootCAs = x509.NewCertPool()
		if !security.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s names a file without a certificate; set it to one that has some in PEM", authorities)
		}
	}
	if variable(certificate) == "" && variable(key) == "" {
		return security, nil
	}
	pair, err := collectorKeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	security.Certificates = []tls.Certificate{pair}
	return security, nil
}

// collectorKeyPair reads the certificate that the collector is shown, and its key, from the files that two variables
// name.
func collectorKeyPair(certificate, key string) (tls.Certificate, error) {
	if variable(certificate) == "" || variable(key) == "" {
		return tls.Certificate{}, fmt.Errorf("only one of %s and %s is set; set both, or unset it", certificate, key)
	}
	chain, err := readNamed(certificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := readNamed(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(chain, private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s and %s cannot be used: %w; set them to a certificate and its key in PEM",
			certificate, key, err)
	}
	return pair, nil
}

// readNamed reads the file that a variable names. Its error has no path: the variable may hold the key itself.
func readNamed(name string) ([]byte, error) {
	text, err := readSmallFile(variable(name))
	if broken, ok := errors.AsType[*fs.PathError](err); ok {
		err = broken.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s names a file that cannot be read: %w; set it to one in PEM that the server can read",
			name, err)
	}
	return text, nil
}
