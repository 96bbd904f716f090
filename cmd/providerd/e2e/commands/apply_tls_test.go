package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

const oneEntry = "oauth2: [{name: a, authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01}]"

// applyOne applies a file with one entry from standard input, and returns the messages.
func applyOne(t *testing.T, url, token string, environment ...string) (string, error) {
	t.Helper()
	command := providerdtest.Command(t.Context(), t.TempDir(), "apply", "-f", "-", "--server", url)
	command.Env = append(append(os.Environ(), "PROVIDERD_TOKEN"+"="+token), environment...)
	command.Stdin = strings.NewReader(oneEntry)
	output, err := command.CombinedOutput()
	return string(output), err
}

func TestApplyRefusesUntrustedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.WriteCertificate(t, dir, 1)
	server := providerdtest.Serve(t, dir, "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	token := providerdtest.Token(t, dir)
	says, err := applyOne(t, server.URL, token)
	if err == nil || !strings.HasSuffix(says, "x509: certificate signed by unknown authority; "+
		"set SSL_CERT_FILE to a PEM file with the certificate of its issuer\n") {
		t.Errorf("a stranger's certificate: %v: %s", err, says)
	}
	says, err = applyOne(t, server.URL, token, "SSL_CERT_FILE="+filepath.Join(dir, "cert.pem"))
	if err != nil || !strings.Contains(says, "1 created") || strings.Contains(says, "unencrypted") {
		t.Errorf("a trusted certificate: %v: %s", err, says)
	}
	plain := strings.Replace(server.URL, "https", "http", 1)
	says, err = applyOne(t, plain, token)
	if err == nil || !strings.Contains(says, "400 Bad Request: The response is not a problem document.") {
		t.Errorf("HTTP to an HTTPS port: %v: %s", err, says)
	}
}
