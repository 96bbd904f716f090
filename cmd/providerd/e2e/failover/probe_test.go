//go:build proof

package failover_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	probePace = 10 * time.Millisecond
	// probeTimeout is how long a probe waits for a response before it reconnects.
	probeTimeout = time.Second
	probeTable   = "CREATE TABLE failover_probe (at timestamptz NOT NULL)"
	probeInsert  = "INSERT INTO failover_probe (at) VALUES ($1)"
)

// probe records when the database itself accepts rows. It has a connection to each server, so that none delays it: no
// client can recover faster.
type probe struct {
	mutex sync.Mutex
	// times are the times at which rows were stored, ascending.
	times []time.Time
}

// startProbe probes the database of a URL until the test ends.
func startProbe(t *testing.T, url string) *probe {
	t.Helper()
	config, err := pgx.ParseConfig(url + "&target_session_attrs=read-write")
	processtest.Must(t, err)
	all := stdlib.OpenDB(*config)
	_, err = all.ExecContext(t.Context(), probeTable)
	processtest.Must(t, errors.Join(err, all.Close()))
	p := &probe{}
	for _, address := range addressesOf(config) {
		config := config.Copy()
		config.Host, config.Port, config.Fallbacks = address.Host, address.Port, nil
		p.start(t, config)
	}
	return p
}

// addressesOf returns the servers of a URL, each once.
func addressesOf(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	found := []*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port}}
	for _, other := range config.Fallbacks {
		if last := found[len(found)-1]; other.Host != last.Host || other.Port != last.Port {
			found = append(found, other)
		}
	}
	return found
}

// start probes one server until the test ends. An insert with a warning does not count: no standby has received it.
func (p *probe) start(t *testing.T, config *pgx.ConnConfig) {
	t.Helper()
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
		if _, err := db.ExecContext(ctx, probeInsert, time.Now()); err == nil && !isWarned.Load() {
			p.mutex.Lock()
			defer p.mutex.Unlock()
			p.times = append(p.times, time.Now())
		}
		return true
	})
	t.Cleanup(func() {
		load.Stop()
		_ = db.Close()
	})
}

// longestPause returns the longest time for which the database accepted no rows.
func (p *probe) longestPause(begun, ended time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return longestPause(p.times, begun, ended)
}
