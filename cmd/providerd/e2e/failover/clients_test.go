//go:build proof

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

	"github.com/google/uuid"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/gen/client"
)

const (
	failoverClients = 18
	// pace is the pause between two creates of a client. It leaves the machine time for the rest of the test.
	pace = 25 * time.Millisecond
)

// refusalTimer records how long each 503 takes.
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

// load starts clients that send one create after another. Each create is sent to random replicas until it is stored;
// the SDK retries on the same replica. A create that is not settled when the load ends stays unsettled in the
// journal.
func (f *failover) load() *providerdtest.Load {
	unsettled := make([]*entry, failoverClients)
	return providerdtest.StartLoad(failoverClients, func(number, n int) bool {
		<-time.After(pace)
		e := unsettled[number]
		if e == nil {
			e = f.journal.begin(f.wayOf(n), fmt.Sprintf("%d-%d-%d", f.round, number, n))
		}
		if f.repeats && n%20 == 0 {
			// Its response is lost.
			_, _, _ = f.sendBare(e, f.fleet.Replica(rand.IntN(replicaCount)))
		}
		if isStored := f.send(e, rand.IntN(replicaCount)); isStored || e.way == byNone && !f.repeats {
			e = nil
		}
		unsettled[number] = e
		return true
	})
}

func (f *failover) wayOf(n int) way {
	if f.repeats {
		return byNone
	}
	return []way{byKey, byNone, byKey, byClientID, byKey, byNone}[n%6]
}

// send sends a create to a replica and reports whether it is stored.
func (f *failover) send(e *entry, number int) bool {
	send := f.sendBare
	if e.way == byKey {
		send = f.sendWithKey
	}
	name, pk, err := send(e, f.fleet.Replica(number))
	if errors.Is(err, client.ErrClientIDTaken) {
		if !e.mayBeStored {
			f.journal.noteFault(e.name + " is taken, but was never stored")
		}
		name, err = e.name, nil
	}
	if err != nil {
		e.mayBeStored = e.mayBeStored || !isRefusal(err)
		return false
	}
	if name != e.name {
		f.journal.noteFault(fmt.Sprintf("the response to %s is the record of %s", e.name, name))
	}
	f.journal.acknowledge(e, pk, number)
	return true
}

// isRefusal reports whether it is certain that nothing was stored.
func isRefusal(err error) bool {
	return errors.Is(err, client.ErrStorageUnavailable) || errors.Is(err, client.ErrOverloaded) ||
		errors.Is(err, syscall.ECONNREFUSED)
}

func (f *failover) sendWithKey(e *entry, replica *providerdtest.Server) (name string, pk int64, err error) {
	// With one retry, the next try soon goes to another replica.
	providers, err := client.New(replica.URL, f.token, client.WithDoer(f.fleet.Client), client.WithRetries(1))
	if err != nil {
		return "", 0, err
	}
	record, err := providers.CreateOAuth2(context.Background(), oauth2Request(e.name), client.WithIdempotencyKey(e.name))
	if err != nil {
		return "", 0, err
	}
	return record.Name, record.PK, nil
}

// sendBare sends a create once, without a key.
func (f *failover) sendBare(e *entry, replica *providerdtest.Server) (name string, pk int64, err error) {
	path, request := providerdtest.OAuth2Path, any(oauth2Request(e.name))
	if e.way == byNone {
		path, request = providerdtest.DirectoryPath, client.WorkspaceDirectoryProviderRequest{
			Name: e.name, DelegatedSubject: "admin@example.com", DefaultGroupEmailDomain: "example.com",
			Credentials: client.NewSecretJSON(e.secret()),
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
		PK   int64
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
