//go:build slow

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
	"example.com/providerd/server/contracttest"
)

const (
	soakCallers = 16
	// soakPace lies between two requests of all callers: 500 in a second, of which 300 are creates.
	soakPace = 2 * time.Millisecond
	// soakRetries outlast a restart on a machine that does much else.
	soakRetries = 10
	// connectionUses is how many requests a caller sends over a connection.
	connectionUses = 50
)

// soakLoad is callers that send requests at a steady pace, whatever they are answered.
type soakLoad struct {
	journal *soakJournal
	stop    chan struct{}
	group   sync.WaitGroup
}

// startSoakLoad starts callers of a server, who trust the certificates in some folders.
func startSoakLoad(t *testing.T, server *operated, journal *soakJournal, trusted ...string) *soakLoad {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(server.folder, "data", initialTokenFile))
	if err != nil {
		t.Fatal(err)
	}
	load := &soakLoad{journal: journal, stop: make(chan struct{})}
	// Who is busy misses a tick, which another caller takes. Where all are, it is lost.
	ticks := time.NewTicker(soakPace)
	security := &tls.Config{RootCAs: trust(t, trusted...), VerifyConnection: func(state tls.ConnectionState) error {
		journal.shakeHands(state.PeerCertificates[0].SerialNumber.Int64())
		return nil
	}}
	for number := range soakCallers {
		connections := &http.Transport{TLSClientConfig: security.Clone()}
		checked := contracttest.ClientOver(t, connections)
		caller := &soakCaller{
			journal: journal, number: number, connections: connections,
			providers: newSDK(t, server, strings.TrimSpace(string(token)), checked),
			anonymous: newSDK(t, server, "nobody", withoutToken{checked}),
		}
		load.group.Go(func() { caller.run(t.Context(), ticks.C, load.stop) })
	}
	t.Cleanup(ticks.Stop)
	return load
}

// end lets the callers finish what they have begun.
func (l *soakLoad) end() {
	close(l.stop)
	l.group.Wait()
}

// withoutToken sends requests without the token that they have.
type withoutToken struct{ *http.Client }

// Do sends a request.
func (w withoutToken) Do(request *http.Request) (*http.Response, error) {
	request.Header.Del("Authorization")
	return w.Client.Do(request)
}

// soakCaller is a program that uses the SDK.
type soakCaller struct {
	journal     *soakJournal
	number      int
	connections *http.Transport
	// providers and anonymous send with a token and without one.
	providers, anonymous *client.Providers
	// last is the OAuth2 provider that the caller created last, with its key, which is its name, and its client id.
	last struct {
		pk            int32
		key, clientID string
	}
}

func newSDK(t *testing.T, server *operated, token string, doer client.HttpRequestDoer) *client.Providers {
	t.Helper()
	providers, err := client.New(server.process.url, token, client.WithDoer(doer), client.WithRetries(soakRetries))
	if err != nil {
		t.Fatal(err)
	}
	return providers
}

// run sends a request for each tick that the caller gets.
func (c *soakCaller) run(ctx context.Context, ticks <-chan time.Time, stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-ticks:
			c.send(ctx, n)
		}
		if n%connectionUses == connectionUses-1 {
			c.connections.CloseIdleConnections()
		}
	}
}

// send sends one of 20 requests that come again and again: 12 creates, and others in between.
func (c *soakCaller) send(ctx context.Context, n int) {
	key := fmt.Sprintf("caller-%d-%d", c.number, n)
	switch n % 20 {
	case 4, 14:
		c.replay(ctx)
	case 6:
		c.validate(c.providers.ValidateOAuth2(ctx, oauth2Create(key), client.WithIdempotencyKey(key)))
	case 16:
		c.validate(c.providers.ValidateWorkspaceDirectory(ctx, directoryCreate(key), client.WithIdempotencyKey(key)))
	case 8:
		c.refuse(ctx, c.providers, client.TypeValidationFailed, oauth2Create(""), key)
	case 10:
		c.refuse(ctx, c.anonymous, client.TypeUnauthorized, oauth2Create(key), key)
	case 12:
		c.refuse(ctx, c.providers, client.TypeIdempotencyKeyReused, oauth2Create("another name"), c.last.key)
	case 18:
		taken := oauth2Create(key)
		taken.ClientID = &c.last.clientID
		c.refuse(ctx, c.providers, client.TypeClientIDTaken, taken, key)
	case 1, 5, 9, 13, 17:
		c.createDirectory(ctx, key)
	default:
		c.createOAuth2(ctx, key)
	}
}

func (c *soakCaller) createOAuth2(ctx context.Context, key string) {
	begun := time.Now()
	record, err := c.providers.CreateOAuth2(ctx, oauth2Create(key), client.WithIdempotencyKey(key))
	c.journal.answer("OAuth2 providers created", faultOf(err))
	if err != nil {
		return
	}
	c.last.pk, c.last.key, c.last.clientID = record.PK, key, record.ClientID
	c.journal.acknowledge(key, soakCreate{record.PK, record.ClientSecret.Reveal()}, time.Since(begun))
}

func (c *soakCaller) createDirectory(ctx context.Context, key string) {
	begun := time.Now()
	record, err := c.providers.CreateWorkspaceDirectory(ctx, directoryCreate(key), client.WithIdempotencyKey(key))
	c.journal.answer("directories created", faultOf(err))
	if err == nil {
		c.journal.acknowledge(key, soakCreate{record.PK, string(record.Credentials.Reveal())}, time.Since(begun))
	}
}

// replay creates again what was created before.
func (c *soakCaller) replay(ctx context.Context) {
	replayed := false
	record, err := c.providers.CreateOAuth2(ctx, oauth2Create(c.last.key),
		client.WithIdempotencyKey(c.last.key), client.WithReplayed(&replayed))
	if err == nil && (!replayed || record.PK != c.last.pk) {
		err = fmt.Errorf("%s has pk %d, and was replayed with %d: %v", c.last.key, c.last.pk, record.PK, replayed)
	}
	c.journal.answer("replays", faultOf(err))
}

// validate looks at what is said of a create that was never sent.
func (c *soakCaller) validate(verdict *client.Verdict, err error) {
	if err == nil && verdict.Outcome != client.VerdictOutcomeWouldCreate {
		err = fmt.Errorf("the outcome is %s", verdict.Outcome)
	}
	c.journal.answer("validations", faultOf(err))
}

// refuse sends a create that is to be refused with a problem of a type.
func (c *soakCaller) refuse(
	ctx context.Context, from *client.Providers, problem string, request client.OAuth2ProviderRequest, key string,
) {
	_, err := from.CreateOAuth2(ctx, request, client.WithIdempotencyKey(key))
	refused, ok := errors.AsType[*client.Error](err)
	if ok && refused.Type == problem {
		err = nil
	} else if err == nil {
		err = errors.New("it was created")
	}
	c.journal.answer("refused as "+strings.TrimPrefix(problem, "/problems/"), faultOf(err))
}

// oauth2Create and directoryCreate have nothing but what is required.
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

func faultOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
