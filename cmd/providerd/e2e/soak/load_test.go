//go:build slow

package soak_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	soakCallers = 16
	// soakPace is the interval between requests of all callers: 500 per second, of which 300 are creates.
	soakPace = 2 * time.Millisecond
	// soakRetries outlast a restart on a busy machine.
	soakRetries = 10
	// connectionUses is how many requests a caller sends over a connection.
	connectionUses = 50
)

// load starts callers that trust some certificates. They send requests at a steady pace, whatever the responses.
func (s *soak) load(t *testing.T, trusted *x509.CertPool) *providerdtest.Load {
	t.Helper()
	token := providerdtest.Token(t, s.dir)
	security := &tls.Config{RootCAs: trusted, VerifyConnection: func(state tls.ConnectionState) error {
		s.certificate.Store(state.PeerCertificates[0].SerialNumber.Int64())
		return nil
	}}
	newSDK := func(token string, doer client.HttpRequestDoer) *client.Providers {
		return processtest.Try(client.New(s.process.URL, token, client.WithDoer(doer), client.WithRetries(soakRetries))).Must(t)
	}
	var callers []*soakCaller
	for number := range soakCallers {
		connections := &http.Transport{TLSClientConfig: security.Clone()}
		checked := contracttest.ClientOver(t, connections)
		callers = append(callers, &soakCaller{
			soak: s, number: number, connections: connections,
			providers: newSDK(token, checked),
			anonymous: newSDK("nobody", withoutToken{checked}),
			last:      &client.OAuth2Provider{},
		})
	}
	// An idle caller takes the next tick. If all are busy, the tick is lost.
	ticks := time.NewTicker(soakPace)
	t.Cleanup(ticks.Stop)
	return providerdtest.StartLoad(soakCallers, func(caller, n int) bool {
		<-ticks.C
		callers[caller].send(t.Context(), n)
		return true
	})
}

type withoutToken struct{ *http.Client }

// Do sends a request.
func (w withoutToken) Do(request *http.Request) (*http.Response, error) {
	request.Header.Del("Authorization")
	return w.Client.Do(request)
}

type soakCaller struct {
	soak        *soak
	number      int
	connections *http.Transport
	// providers sends requests with a token, and anonymous without.
	providers, anonymous *client.Providers
	// last is the OAuth2 provider that the caller created last. Its name is its idempotency key.
	last *client.OAuth2Provider
}

func (c *soakCaller) record(kind, key string, err error) bool {
	if err != nil {
		c.soak.Fail(kind+" "+key, err)
	}
	c.soak.requests.Add(1)
	return err == nil
}

// send sends the next of a cycle of 20 requests, of which 12 are creates.
func (c *soakCaller) send(ctx context.Context, n int) {
	key := fmt.Sprintf("caller-%d-%d", c.number, n)
	switch n % 20 {
	case 4, 14:
		c.replay(ctx)
	case 6:
		record, err := c.providers.CreateOAuth2(ctx, oauth2Create(key), client.WithIdempotencyKey(key), client.WithValidateOnly())
		if err == nil && record.PK != 0 {
			err = fmt.Errorf("pk is %d", record.PK)
		}
		c.record("validations", key, err)
	case 16:
		_, err := c.providers.CreateWorkspaceDirectory(ctx, directoryCreate(key), client.WithIdempotencyKey(key), client.WithValidateOnly())
		c.record("validations", key, err)
	case 8:
		c.refuse(ctx, c.providers, client.ErrValidationFailed, oauth2Create(""), key)
	case 10:
		c.refuse(ctx, c.anonymous, client.ErrUnauthorized, oauth2Create(key), key)
	case 12:
		c.refuse(ctx, c.providers, client.ErrIdempotencyKeyReused, oauth2Create("another name"), c.last.Name)
	case 18:
		taken := oauth2Create(key)
		taken.ClientID = &c.last.ClientID
		c.refuse(ctx, c.providers, client.ErrClientIDTaken, taken, key)
	case 1, 5, 9, 13, 17:
		c.createDirectory(ctx, key)
	default:
		c.createOAuth2(ctx, key)
	}
	if n%connectionUses == connectionUses-1 {
		c.connections.CloseIdleConnections()
	}
}

func (c *soakCaller) createOAuth2(ctx context.Context, key string) {
	record, err := c.providers.CreateOAuth2(ctx, oauth2Create(key), client.WithIdempotencyKey(key))
	if c.record("OAuth2 providers created", key, err) {
		c.last = record
		c.soak.Acknowledge(providerdtest.Record{Name: record.Name, PK: record.PK, Secret: record.ClientSecret.Reveal()})
	}
}

func (c *soakCaller) createDirectory(ctx context.Context, key string) {
	record, err := c.providers.CreateWorkspaceDirectory(ctx, directoryCreate(key), client.WithIdempotencyKey(key))
	if c.record("directories created", key, err) {
		c.soak.Acknowledge(providerdtest.Record{Name: record.Name, PK: record.PK, Secret: string(record.Credentials.Reveal())})
	}
}

func (c *soakCaller) replay(ctx context.Context) {
	replayed := false
	record, err := c.providers.CreateOAuth2(ctx, oauth2Create(c.last.Name),
		client.WithIdempotencyKey(c.last.Name), client.WithReplayed(&replayed))
	if err == nil && (!replayed || record.PK != c.last.PK) {
		err = fmt.Errorf("pk is %d, not %d; replayed is %v", record.PK, c.last.PK, replayed)
	}
	c.record("replays", c.last.Name, err)
}

func (c *soakCaller) refuse(
	ctx context.Context, from *client.Providers, problem error, request client.OAuth2ProviderRequest, key string,
) {
	_, err := from.CreateOAuth2(ctx, request, client.WithIdempotencyKey(key))
	if errors.Is(err, problem) {
		err = nil
	} else if err == nil {
		err = errors.New("it was created")
	}
	c.record("refused as "+strings.TrimPrefix(problem.Error(), "refused: /problems/"), key, err)
}

func oauth2Create(name string) client.OAuth2ProviderRequest {
	return client.OAuth2ProviderRequest{
		Name: name, AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
	}
}

func directoryCreate(name string) client.WorkspaceDirectoryProviderRequest {
	return client.WorkspaceDirectoryProviderRequest{
		Name: name, DelegatedSubject: "admin@example.com", DefaultGroupEmailDomain: "example.com",
		Credentials: client.NewSecretJSON(fmt.Sprintf(`{"key":%q}`, name)),
	}
}
