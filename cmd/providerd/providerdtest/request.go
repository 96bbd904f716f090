package providerdtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// The paths of the two operations, and a valid body for the first.
const (
	OAuth2Path    = "/api/v3/providers/oauth2/"
	DirectoryPath = "/api/v3/providers/workspace_directory/"
	OAuth2Body    = `{"name":"Intranet","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`
)

// Post sends a create with the initial token.
func (s *Server) Post(client *http.Client, path, body string) (int, string, error) {
	return s.PostWithKey(client, path, body, "")
}

// PostWithKey is Post with an idempotency key, unless key is empty.
func (s *Server) PostWithKey(client *http.Client, path, body, key string) (int, string, error) {
	token, err := os.ReadFile(filepath.Join(s.Dir, "data", "initial-token"))
	if err != nil {
		return 0, "", err
	}
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}}
	return s.Do(client, http.MethodPost, path, strings.TrimSpace(string(token)), body, header)
}

// Send is Do for a test, and returns only the status.
func (s *Server) Send(t *testing.T, client *http.Client, method, path, token, body string, header http.Header) int {
	t.Helper()
	status, _, err := s.Do(client, method, path, token, body, header)
	processtest.Must(t, err)
	return status
}

// Do sends a request and returns the status and the body of the response. An empty token, and headers with an empty
// value, are left out.
func (s *Server) Do(client *http.Client, method, path, token, body string, header http.Header) (int, string, error) {
	request, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for name, values := range header {
		if !slices.Equal(values, []string{""}) {
			request.Header[name] = values
		}
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// Get returns the status and the body of a GET response.
func Get(t *testing.T, url string) (int, string) {
	t.Helper()
	status, text, err := (&Server{URL: url}).Do(http.DefaultClient, http.MethodGet, "", "", "", nil)
	processtest.Must(t, err)
	return status, text
}

// Dial connects to the server until the test ends, with a deadline after processtest.Timeout.
func Dial(t *testing.T, server *Server) net.Conn {
	t.Helper()
	connection := processtest.Try(net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))).Must(t)
	t.Cleanup(func() { _ = connection.Close() })
	processtest.Must(t, connection.SetDeadline(time.Now().Add(processtest.Timeout)))
	return connection
}

// Token returns the initial token of a server in dir.
func Token(t *testing.T, dir string) string {
	t.Helper()
	return strings.TrimSpace(string(processtest.Try(os.ReadFile(filepath.Join(dir, "data", "initial-token"))).Must(t)))
}

// CreateToken creates a token for the OAuth2 operation, and for others, in the database in dir.
func CreateToken(t *testing.T, dir, name string, others ...string) string {
	t.Helper()
	words := []string{"token", "create", "--quiet", "--name", name, "--allow", "providers_oauth2_create"}
	for _, operation := range others {
		words = append(words, "--allow", operation)
	}
	return strings.TrimSpace(RunCommand(t, dir, words...))
}

// Create creates a provider. The response must be 201.
func (s *Server) Create(t *testing.T, client *http.Client) {
	t.Helper()
	s.ExpectPost(t, client, http.StatusCreated, OAuth2Path, OAuth2Body, "")
}

// ExpectPost is PostWithKey, whose response must have a status, and returns the body of the response.
func (s *Server) ExpectPost(t *testing.T, client *http.Client, want int, path, body, key string) string {
	t.Helper()
	status, text, err := s.PostWithKey(client, path, body, key)
	processtest.Require(t, err == nil && status == want, "status is %d, want %d, %v: %s", status, want, err, text)
	return text
}

// CreateOnce creates an OAuth2 provider whose name is its idempotency key. Any status except 201 is an error.
func (s *Server) CreateOnce(client *http.Client, name string) (Record, error) {
	return ErrorUnlessCreated(s.CreateNamed(client, name, ""))
}

// CreateNamed creates an OAuth2 provider whose name is its idempotency key. The client_id is generated if empty.
func (s *Server) CreateNamed(client *http.Client, name, clientID string) (status int, created Record, err error) {
	fields := map[string]string{"name": name, "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}
	if clientID != "" {
		fields["client_id"] = clientID
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return 0, Record{}, err
	}
	status, text, err := s.PostWithKey(client, OAuth2Path, string(body), name)
	if err != nil || status != http.StatusCreated {
		return status, Record{}, err
	}
	var record struct {
		PK     int64
		Name   string
		Secret string `json:"client_secret"`
	}
	err = json.Unmarshal([]byte(text), &record)
	return status, Record{record.Name, record.PK, record.Secret}, err
}

// ErrorUnlessCreated returns an error if err is nil and the status is not 201.
func ErrorUnlessCreated(status int, record Record, err error) (Record, error) {
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("status is %d", status)
	}
	return record, err
}

// WriteCertificate writes a self-signed certificate for 127.0.0.1 and 127.0.0.2, and its key, to dir.
func WriteCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	WriteCertificateValid(t, dir, serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// WriteCertificateValid is WriteCertificate with a validity.
func WriteCertificateValid(t *testing.T, dir string, serial int64, from, to time.Time) {
	t.Helper()
	key := processtest.Try(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Must(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)},
		NotBefore: from, NotAfter: to,
	}
	certificate, certificateErr := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	private, keyErr := x509.MarshalPKCS8PrivateKey(key)
	processtest.Must(t, errors.Join(certificateErr, keyErr))
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		processtest.Must(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

// ServedSerial returns the serial number of the certificate that the server presents after its next reload.
func ServedSerial(t *testing.T, address string) int64 {
	t.Helper()
	<-time.After(time.Second)
	connection := processtest.Try(tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})).Must(t)
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// CertPool returns a pool of the certificates in directories.
func CertPool(t *testing.T, dirs ...string) *x509.CertPool {
	t.Helper()
	trusted := x509.NewCertPool()
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
		processtest.Require(t, err == nil && trusted.AppendCertsFromPEM(text), "%v", err)
	}
	return trusted
}
