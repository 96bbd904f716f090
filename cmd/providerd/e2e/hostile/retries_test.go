//go:build slow

package hostile_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestRetriesAndStallsTakeLittleMemory has five callers that retry the keys of large records with small bodies, over many
// connections, while others stall within long headers or after them. Ordinary creates must succeed. Nothing runs in
// parallel, so that the server gets as much as possible to do.
func TestRetriesAndStallsTakeLittleMemory(t *testing.T) {
	program, retries, stalls, duration := providerdtest.Build(t), 35, 60, time.Second
	if processtest.ProofSize(t, "hostile", 0) > 2_000 {
		retries, stalls, duration = 350, 600, time.Minute
	}
	for scheme, flags := range map[string][]string{"http": nil, "https": {"--tls-cert", "cert.pem", "--tls-key", "key.pem"}} {
		for name, count := range map[string]struct{ retries, stalls int }{
			"retries": {retries, 0}, "stalls": {0, stalls}, "both": {retries, stalls},
		} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				providerdtest.WriteCertificate(t, dir, 1)
				command := providerdtest.ServeCommand(t.Context(), dir, flags...)
				command.Path = program
				crowd := retryingCrowd{Server: providerdtest.MustStart(t, command)}
				crowd.attack(t, count.retries, count.stalls, duration)
			})
		}
	}
}

// retryingCrowd retries creates, and stalls, over many connections to a server.
type retryingCrowd struct {
	*providerdtest.Server
	// retried counts the creates of large records, and the retries that were compared with them.
	retried atomic.Int64
}

func (c *retryingCrowd) attack(t *testing.T, retries, stalls int, duration time.Duration) {
	client := newTrustingClient(t)
	var tokens []string
	for i := range 5 {
		token := providerdtest.CreateToken(t, c.Dir, fmt.Sprint("hostile-", i), "providers_workspace_directory_create")
		processtest.Must(t, c.retry(client, token, hostileShapes()["short names"].make(largeBody), http.StatusCreated))
		tokens = append(tokens, token)
	}
	ctx, stop := context.WithTimeout(t.Context(), duration)
	defer stop()
	var senders sync.WaitGroup
	for i := range retries {
		senders.Go(func() {
			const small = `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":{}}`
			for ctx.Err() == nil {
				processtest.Check(t, c.retry(client, tokens[i%5], small, http.StatusUnprocessableEntity))
			}
		})
	}
	for i := range stalls {
		header := "GET / HTTP/1.1\r\nHost: x\r\n" + distinctFields(240)
		if i%2 == 0 {
			header = createHeader(providerdtest.OAuth2Path, tokens[i%5], 100) + distinctFields(240) + "\r\n"
		}
		senders.Go(func() { c.stall(ctx, header) })
	}
	ordinary := newTrustingClient(t)
	for range 10 {
		c.Create(t, ordinary)
	}
	senders.Wait()
	wantHealthy(t, client, c.Server)
	checkPeakMemory(t, c.Server)
	t.Logf("%d creates and retries", c.retried.Load())
	processtest.Expect(t, retries == 0 || c.retried.Load() != 5, "no retry was compared with its record")
}

func newTrustingClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 1_000, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// retry sends a body with the key of a record. The response must have the status, or be a refusal for a second.
func (c *retryingCrowd) retry(client *http.Client, token, body string, want int) error {
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"large"}}
	status, text, err := c.Do(client, http.MethodPost, providerdtest.DirectoryPath, token, body, header)
	switch {
	case err != nil:
		return err
	case status == want:
		c.retried.Add(1)
		return nil
	case status == http.StatusServiceUnavailable:
		return nil
	}
	return fmt.Errorf("status is %d, want %d: %s", status, want, text)
}

// stall sends a header over one connection after the other, and waits until the server closes it.
func (c *retryingCrowd) stall(ctx context.Context, header string) {
	address, isPlain := strings.CutPrefix(c.URL, "http://")
	for ctx.Err() == nil {
		dial := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext
		if isPlain {
			dial = new(net.Dialer).DialContext
		}
		connection, err := dial(ctx, "tcp", strings.TrimPrefix(address, "https://"))
		if err != nil {
			continue
		}
		end := context.AfterFunc(ctx, func() { _ = connection.Close() })
		_, err = io.WriteString(connection, header)
		_, errRead := io.Copy(io.Discard, connection)
		_ = errors.Join(err, errRead, connection.Close())
		end()
	}
}

func distinctFields(count int) string {
	var fields strings.Builder
	for i := range count {
		fmt.Fprintf(&fields, "%s-%d: v\r\n", strings.Repeat("n", 50), i)
	}
	return fields.String()
}
