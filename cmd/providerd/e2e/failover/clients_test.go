//go:build proof

package failover_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

const (
	failoverClients = 18
	// pace is the pause between two creates of a client. It leaves the machine time for the rest of the test.
	pace = 25 * time.Millisecond
)

// doer sends requests, and records how long each 503 takes.
type doer struct {
	*failover
	// isKeyless is set if it removes the idempotency keys, which the SDK always sends.
	isKeyless bool
}

// Do sends a request.
func (d doer) Do(request *http.Request) (*http.Response, error) {
	if d.isKeyless {
		request.Header.Del("Idempotency-Key")
	}
	begun := time.Now()
	response, err := d.fleet.Client.Do(request)
	if err == nil && response.StatusCode == http.StatusServiceUnavailable {
		d.journal.noteRefusal(time.Since(begun))
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
			way := []way{byKey, byNone, byKey, byClientID, byKey, byNone}[n%6]
			if f.repeats {
				way = byNone
			}
			e = f.journal.begin(way, fmt.Sprintf("%d-%d-%d", f.round, number, n))
		}
		if f.repeats && n%20 == 0 {
			// Its response is lost.
			_, _, _ = f.create(e, rand.IntN(replicaCount))
		}
		if isStored := f.send(e, rand.IntN(replicaCount)); isStored || e.way == byNone && !f.repeats {
			e = nil
		}
		unsettled[number] = e
		return true
	})
}

func (f *failover) send(e *entry, number int) bool {
	name, pk, err := f.create(e, number)
	if errors.Is(err, client.ErrClientIDTaken) {
		if !e.mayBeStored {
			f.journal.noteFault(e.name + " is taken, but was never stored")
		}
		name, err = e.name, nil
	}
	if err != nil {
		// Then it is certain that nothing was stored.
		isRefusal := errors.Is(err, client.ErrStorageUnavailable) || errors.Is(err, client.ErrOverloaded) ||
			errors.Is(err, syscall.ECONNREFUSED)
		e.mayBeStored = e.mayBeStored || !isRefusal
		return false
	}
	if name != e.name {
		f.journal.noteFault(fmt.Sprintf("the response to %s is the record of %s", e.name, name))
	}
	f.journal.acknowledge(e, pk, number)
	return true
}

// create sends a create to a replica, once if it has no key, and returns the record.
func (f *failover) create(e *entry, number int) (name string, pk int64, err error) {
	retries := 0
	if e.way == byKey {
		// With one retry, the next try soon goes to another replica.
		retries = 1
	}
	ctx, sender := context.Background(), doer{f, e.way != byKey}
	providers, err := client.New(f.fleet.Replica(number).URL, f.token, client.WithDoer(sender), client.WithRetries(retries))
	if err != nil {
		return "", 0, err
	}
	if e.way == byNone {
		record, err := providers.CreateWorkspaceDirectory(ctx, client.WorkspaceDirectoryProviderRequest{
			Name: e.name, DelegatedSubject: "admin@example.com", DefaultGroupEmailDomain: "example.com",
			Credentials: client.NewSecretJSON(e.secret()),
		})
		if err != nil {
			return "", 0, err
		}
		return record.Name, record.PK, nil
	}
	record, err := providers.CreateOAuth2(ctx, client.OAuth2ProviderRequest{
		Name: e.name, AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"),
		ClientID: &e.name, ClientSecret: new(client.NewSecret(e.secret())),
	}, client.WithIdempotencyKey(e.name))
	if err != nil {
		return "", 0, err
	}
	return record.Name, record.PK, nil
}

const (
	probePace = 10 * time.Millisecond
	// probeTimeout is how long a probe waits for a response before it reconnects.
	probeTimeout = time.Second
)

// probe records when the database itself accepts rows, over a connection to each server: no client can recover faster.
type probe struct {
	mutex sync.Mutex
	// times are the times at which rows were stored, ascending.
	times []time.Time
}

func startProbe(t *testing.T, url string) *probe {
	config, err := pgx.ParseConfig(url + "&target_session_attrs=read-write")
	processtest.Must(t, err)
	all := stdlib.OpenDB(*config)
	_, err = all.ExecContext(t.Context(), "CREATE TABLE failover_probe (at timestamptz NOT NULL)")
	processtest.Must(t, errors.Join(err, all.Close()))
	p := &probe{}
	// Without TLS, a server is one address.
	for _, address := range append(config.Fallbacks, &pgconn.FallbackConfig{Host: config.Host, Port: config.Port}) {
		config := config.Copy()
		config.Host, config.Port, config.Fallbacks = address.Host, address.Port, nil
		p.start(t, config)
	}
	return p
}

// start probes one server until the test ends. An insert with a warning does not count: no standby has received it.
func (p *probe) start(t *testing.T, config *pgx.ConnConfig) {
	var isWarned atomic.Bool
	config.RuntimeParams["client_min_messages"] = "warning"
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		isWarned.Store(isWarned.Load() || notice.SeverityUnlocalized == "WARNING")
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(1)
	load := providerdtest.StartLoad(1, func(_, _ int) bool {
		<-time.After(probePace)
		isWarned.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		_, err := db.ExecContext(ctx, "INSERT INTO failover_probe (at) VALUES ($1)", time.Now())
		if err == nil && !isWarned.Load() {
			p.mutex.Lock()
			defer p.mutex.Unlock()
			p.times = append(p.times, time.Now())
		}
		return true
	})
	t.Cleanup(func() { load.Stop(); _ = db.Close() })
}

func (p *probe) longestPause(begun, ended time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return longestPause(p.times, begun, ended)
}
