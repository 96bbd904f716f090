//go:build slow

package failover_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
)

const (
	failoverClients = 18
	// pace lies between two creates of a client, so that the machine has time for what the test does beside them.
	pace = 25 * time.Millisecond
)

// refusalTimer notes how long each 503 takes.
type refusalTimer struct {
	http.RoundTripper
	journal *failoverJournal
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

// load starts clients that send one create after the other. Each is sent until it is stored, to whatever replica chance
// takes, or to the same one again where the SDK does so. A create that is not settled when the load ends stays in the
// journal as it is.
func (f *failover) load() *providerdtest.Load {
	open := make([]*entry, failoverClients)
	return providerdtest.StartLoad(failoverClients, func(number, n int) bool {
		<-time.After(pace)
		one := open[number]
		if one == nil {
			one = f.journal.begin(wayOf(n), fmt.Sprintf("%d-%d-%d", f.round, number, n))
		}
		if isStored := f.send(one, rand.IntN(replicaCount)); isStored || one.way == byNothing {
			one = nil
		}
		open[number] = one
		return true
	})
}

func wayOf(n int) way { return []way{byKey, byNothing, byKey, byClientID, byKey, byNothing}[n%6] }

// send sends a create to a replica, and tells whether it is stored.
func (f *failover) send(one *entry, number int) bool {
	send := f.sendBare
	if one.way == byKey {
		send = f.sendWithKey
	}
	name, pk, err := send(one, f.fleet.Replica(number))
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Type == client.TypeClientIDTaken {
		if !one.isDoubtful {
			f.journal.complain(one.name + " is taken, though nobody stored it")
		}
		name, err = one.name, nil
	}
	if err != nil {
		one.isDoubtful = one.isDoubtful || !isRefusal(err)
		return false
	}
	if name != one.name {
		f.journal.complain(fmt.Sprintf("%s is answered with the record of %s", one.name, name))
	}
	f.journal.acknowledge(one, pk, number)
	return true
}

// isRefusal tells whether nothing was stored for certain.
func isRefusal(err error) bool {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Type == client.TypeStorageUnavailable || refused.Type == client.TypeOverloaded
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func (f *failover) sendWithKey(one *entry, replica *providerdtest.Server) (name string, pk int32, err error) {
	// A replica that is gone is left for another one soon.
	providers, err := client.New(replica.URL, f.token, client.WithDoer(f.fleet.Client), client.WithRetries(1))
	if err != nil {
		return "", 0, err
	}
	record, err := providers.CreateOAuth2(context.Background(), oauth2Request(one.name), client.WithIdempotencyKey(one.name))
	if err != nil {
		return "", 0, err
	}
	return record.Name, record.PK, nil
}

// sendBare sends a create once, without a key.
func (f *failover) sendBare(one *entry, replica *providerdtest.Server) (name string, pk int32, err error) {
	path, request := providerdtest.OAuth2Path, any(oauth2Request(one.name))
	if one.way == byNothing {
		path, request = providerdtest.DirectoryPath, client.WorkspaceDirectoryProviderRequest{
			Name: one.name, DelegatedSubject: "admin@example.com", DefaultGroupEmailDomain: "example.com",
			Credentials: client.NewSecretJSON(one.secret()),
		}
	}
	body, err := json.Marshal(request)
	if err != nil {
		return "", 0, err
	}
	status, text, err := replica.Post(f.fleet.Client, path, string(body))
	if err != nil {
		return "", 0, err
	}
	if status != http.StatusCreated {
		problem := &client.Error{}
		return "", 0, cmp.Or[error](json.Unmarshal([]byte(text), &problem.Problem), problem)
	}
	var record struct {
		Name string
		PK   int32
	}
	err = json.Unmarshal([]byte(text), &record)
	return record.Name, record.PK, err
}

func oauth2Request(name string) client.OAuth2ProviderRequest {
	return client.OAuth2ProviderRequest{
		Name: name, AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
		ClientID: &name, ClientSecret: new(client.NewSecret(secretOf(name))),
	}
}

func secretOf(name string) string { return "secret of " + name }
