package diagnose

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/files"
)

// Health has the flags of "providerd health".
type Health struct {
	Listen  console.ListenAddress `default:"127.0.0.1:8080" env:"PROVIDERD_LISTEN" placeholder:"HOST:PORT" help:"Address that the server listens on (${env}; default ${default})."`
	TLSCert string                `env:"PROVIDERD_TLS_CERT" type:"path" placeholder:"PATH" help:"PEM certificate chain of the server (${env}; default none)."`
}

// Help is the long help text.
func (Health) Help() string {
	return "Requests /readyz from the server on this host. The exit status is 0 if the server can store providers now, " +
		"and 1 otherwise. Use it as the health check of a container; it reads the address from the same variables as the " +
		"server."
}

// errOtherCertificate means that a server presents a certificate other than the expected one.
var errOtherCertificate = errors.New("the certificate differs")

// Run sends one request.
func (c *Health) Run(ctx context.Context, out *console.Output) error {
	const healthTimeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	scheme, transport := "http", &http.Transport{}
	if c.TLSCert != "" {
		security, err := trustOnly(c.TLSCert)
		if err != nil {
			return err
		}
		scheme, transport.TLSClientConfig = "https", security
	}
	url := scheme + "://" + string(c.Listen) + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	response, err := transport.RoundTrip(request)
	switch _, isPlain := errors.AsType[tls.RecordHeaderError](err); {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not respond within %s; see the log of the server, or restart it", url, healthTimeout)
	case isPlain:
		return fmt.Errorf("%s serves plain HTTP; omit --tls-cert, or enable TLS on the server", url)
	case errors.Is(err, errOtherCertificate):
		return fmt.Errorf("%s presents a certificate other than the one in %s; pass the server's certificate with "+
			"--tls-cert", url, c.TLSCert)
	case err != nil:
		return fmt.Errorf("%s does not respond: %w; start the server, or pass its address with --listen", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responds with %s; %s", url, response.Status, reasonOfRefusal(response))
	}
	return out.Line("ready")
}

// reasonOfRefusal returns why a server is not ready, as far as its response tells.
func reasonOfRefusal(response *http.Response) string {
	const maxBytes = 4096
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxBytes))
	switch {
	case bytes.Contains(text, []byte("HTTP request to an HTTPS server")):
		return "it serves HTTPS; pass its certificate with --tls-cert"
	case bytes.Contains(text, []byte(`"draining"`)):
		return "it is shutting down"
	default:
		return `run "providerd doctor" or see the log of the server`
	}
}

// trustOnly returns a configuration that trusts only the first certificate in a PEM file, whatever its name.
func trustOnly(path string) (*tls.Config, error) {
	text, err := files.ReadSmall(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	block, rest := pem.Decode(text)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, fmt.Errorf("%s does not contain a PEM certificate; pass the server's certificate with --tls-cert", path)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // The certificate itself is compared.
		VerifyConnection: func(state tls.ConnectionState) error {
			if !bytes.Equal(state.PeerCertificates[0].Raw, block.Bytes) {
				return errOtherCertificate
			}
			return nil
		},
	}, nil
}
