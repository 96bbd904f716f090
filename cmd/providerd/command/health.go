package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

type healthCommand struct {
	Listen  flags.ListenAddress `default:"127.0.0.1:8080" env:"PROVIDERD_LISTEN" placeholder:"HOST:PORT" help:"Address that the server listens on (${env}; default ${default})."`
	TLSCert string              `env:"PROVIDERD_TLS_CERT" type:"path" placeholder:"PATH" help:"Certificate chain in PEM that the server shows, where it serves HTTPS (${env})."`
}

// Help is the long help text.
func (healthCommand) Help() string {
	return "Asks the server on this machine whether it can store providers now, at /readyz. The exit status is 0 when " +
		"it can, and 1 otherwise: for a container, whose environment tells the address of the server."
}

// healthPatience is how long a server may take to answer.
const healthPatience = 5 * time.Second

// Run asks the server once.
func (c *healthCommand) Run(ctx context.Context, out *console.Output) error {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	scheme, transport := "http", &http.Transport{}
	if c.TLSCert != "" {
		security, err := trustOnly(c.TLSCert)
		if err != nil {
			return err
		}
		scheme, transport.TLSClientConfig = "https", security
	}
	url := scheme + "://" + c.Listen.Local() + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	response, err := transport.RoundTrip(request)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s does not answer within %s; see the log of the server, or start it again", url, healthPatience)
	}
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s; %s", url, response.Status, reasonOfRefusal(response))
	}
	return out.Line("ready")
}

// maxHealthBytes is more than a server that is not ready answers.
const maxHealthBytes = 4096

// reasonOfRefusal says why a server is not ready, as far as its answer tells.
func reasonOfRefusal(response *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxHealthBytes))
	switch {
	case strings.Contains(string(text), "HTTP request to an HTTPS server"):
		return "it speaks HTTPS: name its certificate with --tls-cert"
	case strings.Contains(string(text), `"draining"`):
		return "it is draining: it was told to stop"
	default:
		return `"providerd doctor" and the log of the server say why`
	}
}

// trustOnly lets a connection be made to whoever shows the certificate in a file, whatever name it is for.
func trustOnly(path string) (*tls.Config, error) {
	wanted, err := flags.ReadCertificate(path)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // The certificate itself is compared.
		VerifyConnection: func(state tls.ConnectionState) error {
			if !bytes.Equal(state.PeerCertificates[0].Raw, wanted) {
				return errors.New("its certificate is not that of " + path)
			}
			return nil
		},
	}, nil
}
