//go:build proof

package neighbors_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// load is callers that create until they are stopped. Half of them send each create again, with its key, until it is
// acknowledged; the others send each once, without a key.
type load struct {
	*providerdtest.Journal
	*providerdtest.Load
	refused atomic.Int64
	// slowest is how long the slowest create of each caller took.
	slowest [callers]time.Duration
}

const callers = 16

// counts are what callers got and what is stored.
type counts struct{ acknowledged, lost, doubled, refused int }

// keyless sends requests without their idempotency key.
type keyless struct{ http.RoundTripper }

func (k keyless) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Del("Idempotency-Key")
	return k.RoundTripper.RoundTrip(request)
}

// start starts the load. Each caller sends to one of the servers.
func start(t *testing.T, servers ...*providerdtest.Server) *load {
	t.Helper()
	l, keyed := &load{Journal: providerdtest.NewJournal()}, newClient(t)
	clients := []*http.Client{{Transport: keyless{keyed.Transport}, Timeout: keyed.Timeout}, keyed}
	l.Load = providerdtest.StartLoad(callers, func(caller, n int) bool {
		name, begun := fmt.Sprintf("%d-%d", caller, n), time.Now()
		defer func() { l.slowest[caller] = max(l.slowest[caller], time.Since(begun)) }()
		for time.Since(begun) < time.Minute {
			record, err := servers[caller/2%len(servers)].CreateOnce(clients[caller%2], name)
			if err == nil {
				l.Acknowledge(record)
				return true
			}
			l.refused.Add(1)
			<-time.After(20 * time.Millisecond)
			if caller%2 == 0 {
				return true
			}
		}
		l.Fail(name, fmt.Errorf("not acknowledged within a minute"))
		return false
	})
	t.Cleanup(l.Stop)
	return l
}

// newClient returns a client that keeps the connections of all callers, and does not check responses: a proxy's own
// break the contract.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{
		MaxIdleConnsPerHost: callers, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: processtest.Timeout}
}

// count stops the load, and compares what was acknowledged with what is stored.
func (l *load) count(t *testing.T, stored []providerdtest.Record) counts {
	t.Helper()
	l.Stop()
	// Callers other than those of the load use other names.
	stored = slices.DeleteFunc(stored, func(record providerdtest.Record) bool {
		return strings.Trim(record.Name, "-0123456789") != ""
	})
	pks := map[string]int64{}
	for _, record := range stored {
		pks[record.Name] = record.PK
	}
	c := counts{acknowledged: len(l.Creates), doubled: len(stored) - len(pks), refused: int(l.refused.Load())}
	for name, record := range l.Creates {
		if pks[name] != record.PK {
			c.lost++
		}
	}
	processtest.Expect(t, len(l.Failures) == 0, "%v", l.Failures)
	return c
}
