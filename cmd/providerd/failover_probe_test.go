//go:build failover

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	probePace = 10 * time.Millisecond
	// probePatience is how long a probe waits for an answer before it connects again.
	probePatience = time.Second
	probeTable    = "CREATE TABLE failover_probe (at timestamptz NOT NULL)"
	probeInsert   = "INSERT INTO failover_probe (at) VALUES ($1)"
)

// probe tells when the database itself takes rows. It has a connection to each server, so that none of them holds it
// up: no client can do better.
type probe struct {
	mutex sync.Mutex
	// times are those at which a row was stored, ascending.
	times []time.Time
}

// startProbe probes the database of a URL until the test ends.
func startProbe(t *testing.T, url string) *probe {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	config, err := pgx.ParseConfig(url + "&target_session_attrs=read-write")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, probeTable)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	p := &probe{}
	var group sync.WaitGroup
	for _, address := range addressesOf(config) {
		config := config.Copy()
		config.Host, config.Port, config.Fallbacks = address.Host, address.Port, nil
		group.Go(func() { p.run(ctx, config) })
	}
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return p
}

// addressesOf are the servers that a URL names, each once.
func addressesOf(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	found := []*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port}}
	for _, other := range config.Fallbacks {
		if last := found[len(found)-1]; other.Host != last.Host || other.Port != last.Port {
			found = append(found, other)
		}
	}
	return found
}

// run probes one server.
func (p *probe) run(ctx context.Context, config *pgx.ConnConfig) {
	var warned bool
	config.RuntimeParams["client_min_messages"] = "warning"
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		warned = warned || notice.SeverityUnlocalized == "WARNING"
	}
	ticks := time.NewTicker(probePace)
	defer ticks.Stop()
	var conn *pgx.Conn
	for ctx.Err() == nil {
		warned = false
		var err error
		if conn, err = p.insert(ctx, conn, config); err == nil && !warned {
			p.note()
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
	if conn != nil {
		_ = conn.Close(context.Background())
	}
}

// insert stores a row. It returns the connection for the next one, or nil.
func (p *probe) insert(ctx context.Context, conn *pgx.Conn, config *pgx.ConnConfig) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if conn == nil {
		fresh, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		conn = fresh
	}
	if _, err := conn.Exec(ctx, probeInsert, time.Now()); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("insert: %w", err)
	}
	return conn, nil
}

func (p *probe) note() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.times = append(p.times, time.Now())
}

// longestPause is how long the database took no rows.
func (p *probe) longestPause(begun, ended time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return longestPause(p.times, begun, ended)
}
