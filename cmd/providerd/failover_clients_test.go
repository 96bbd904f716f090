//go:build failover

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
)

const (
	failoverClients = 18
	// pace lies between two creates of a client, so that the machine has time for what the test does beside them.
	pace = 25 * time.Millisecond
)

// caller sends creates to the replicas.
type caller struct {
	fleet   *mortalFleet
	journal *journal
	http    *http.Client
	token   string
}

// refusalTimer notes how long each 503 takes.
type refusalTimer struct {
	http.RoundTripper
	journal *journal
}

// RoundTrip sends a request.
func (r refusalTimer) RoundTrip(request *http.Request) (*http.Response, error) {
	begun := time.Now()
	response, err := r.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusServiceUnavailable {
		r.journal.noteRefusal(time.Since(begun))
	}
	return response, err
}

// run sends creates one after the other until stop is closed. Each is sent until it is stored, to whatever replica
// chance takes, or to the same one again where the SDK does so. A create that is not settled when the run ends stays in
// the journal as it is.
func (c *caller) run(stop <-chan struct{}, prefix string) {
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	for n := 0; ; n++ {
		one := c.journal.begin(wayOf(n), fmt.Sprintf("%s-%d", prefix, n))
		for settled := false; !settled; settled = settled || one.way == byNothing {
			select {
			case <-stop:
				return
			case <-ticks.C:
				settled = c.send(one, rand.IntN(replicaCount))
			}
		}
	}
}

func wayOf(n int) way { return []way{byKey, byNothing, byKey, byClientID, byKey, byNothing}[n%6] }

// send sends a create to a replica, and tells whether it is stored.
func (c *caller) send(one *entry, replica int) bool {
	url := c.fleet.urlOf(replica)
	var pk int32
	var err error
	switch one.way {
	case byKey:
		pk, err = c.sendWithKey(one.name, url)
	case byClientID:
		pk, err = c.sendWithClientID(one.name, url)
	case byNothing:
		pk, err = c.sendBare(one.name, url)
	}
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Type == "/problems/client-id-taken" {
		if !one.isDoubtful {
			c.journal.complain(one.name + " is taken, though nobody stored it")
		}
		err = nil
	}
	if err != nil {
		one.isDoubtful = one.isDoubtful || !isRefusal(err)
		return false
	}
	c.journal.acknowledge(one, pk, replica)
	return true
}

// isRefusal tells whether nothing was stored for certain.
func isRefusal(err error) bool {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Type == "/problems/storage-unavailable" || refused.Type == "/problems/overloaded"
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func (c *caller) sendWithKey(name, url string) (int32, error) {
	// A replica that is gone is left for another one soon.
	providers, err := client.New(url, c.token, client.WithDoer(c.http), client.WithRetries(1))
	if err != nil {
		return 0, err
	}
	record, err := providers.CreateOAuth2(context.Background(), oauth2Request(name), client.WithIdempotencyKey(name))
	if err != nil {
		return 0, err
	}
	c.compare(name, record.Name, record.ClientID)
	return record.PK, nil
}

func (c *caller) sendWithClientID(name, url string) (int32, error) {
	plain, err := c.plain(url)
	if err != nil {
		return 0, err
	}
	answer, err := plain.ProvidersOauth2CreateWithResponse(context.Background(), nil, oauth2Request(name))
	if err != nil {
		return 0, err
	}
	if answer.JSON201 == nil {
		return 0, problemOf(answer.Body)
	}
	c.compare(name, answer.JSON201.Name, answer.JSON201.ClientID)
	return answer.JSON201.PK, nil
}

func (c *caller) sendBare(name, url string) (int32, error) {
	plain, err := c.plain(url)
	if err != nil {
		return 0, err
	}
	answer, err := plain.ProvidersWorkspaceDirectoryCreateWithResponse(context.Background(), nil, directoryRequest(name))
	if err != nil {
		return 0, err
	}
	if answer.JSON201 == nil {
		return 0, problemOf(answer.Body)
	}
	c.compare(name, answer.JSON201.Name, answer.JSON201.DelegatedSubject)
	return answer.JSON201.PK, nil
}

// plain is the generated client, which sends no key of its own and nothing twice.
func (c *caller) plain(url string) (*client.ClientWithResponses, error) {
	return client.NewClientWithResponses(url+"/api/v3", client.WithHTTPClient(c.http),
		client.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+c.token)
			return nil
		}))
}

// compare complains of a record of somebody else's.
func (c *caller) compare(name string, answered ...string) {
	for _, value := range answered {
		if value != name && value != subjectOf(name) {
			c.journal.complain(fmt.Sprintf("%s is answered with the record of %s", name, value))
		}
	}
}

func problemOf(body []byte) error {
	problem := &client.Error{}
	if err := json.Unmarshal(body, &problem.Problem); err != nil {
		return fmt.Errorf("answer is no problem: %w", err)
	}
	return problem
}

func oauth2Request(name string) client.OAuth2ProviderRequest {
	return client.OAuth2ProviderRequest{
		Name: name, AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
		ClientID: &name, ClientSecret: new(client.NewSecret(secretOf(name))),
	}
}

func directoryRequest(name string) client.WorkspaceDirectoryProviderRequest {
	return client.WorkspaceDirectoryProviderRequest{
		Name: name, DelegatedSubject: subjectOf(name), DefaultGroupEmailDomain: "example.com",
		Credentials: client.NewSecretJSON(credentialsOf(name)),
	}
}

func secretOf(name string) string { return "secret of " + name }

func subjectOf(name string) string { return name + "@example.com" }

func credentialsOf(name string) string { return fmt.Sprintf(`{"key":%q}`, name) }
