package server

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/store"
)

const (
	// expiryNotice is how long before the expiry of its newest token a caller is counted.
	expiryNotice = 14 * 24 * time.Hour
	// expiryInterval is how often the database is read, and expiryTimeout how long that can take.
	expiryInterval = time.Minute
	expiryTimeout  = 5 * time.Second
)

// expiryCollector reads when tokens end and how old the newest key is, at most once per expiryInterval.
type expiryCollector struct {
	store *store.Store
	mutex sync.Mutex
	// readAt is when tokens and keyCreated were read, and err why that failed.
	readAt     time.Time
	tokens     store.TokenExpiry
	keyCreated time.Time
	err        error
}

// Describe sends nothing, because what cannot be read is omitted.
func (*expiryCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends what was read last.
func (c *expiryCollector) Collect(out chan<- prometheus.Metric) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if time.Since(c.readAt) >= expiryInterval {
		c.read()
	}
	if c.err != nil {
		return
	}
	sendGauge(out, "expiring_callers", "Callers left without a valid token within 14 days.", c.tokens.Callers)
	sendTime(out, "token_expiry_timestamp_seconds",
		"When the first caller is left without a valid token; the newest token of a caller counts.", c.tokens.First)
	sendTime(out, "key_created_timestamp_seconds", "When the newest key of the keyset was created.", c.keyCreated)
}

func (c *expiryCollector) read() {
	ctx, cancel := context.WithTimeout(context.Background(), expiryTimeout)
	defer cancel()
	c.readAt = time.Now()
	if c.tokens, c.err = c.store.TokenExpiry(ctx, c.readAt.Add(expiryNotice)); c.err == nil {
		c.keyCreated, c.err = c.store.NewestKeyCreated(ctx)
	}
}

// sendTime sends a time, unless it is unknown.
func sendTime(out chan<- prometheus.Metric, name, help string, at time.Time) {
	if !at.IsZero() {
		sendGauge(out, name, help, at.Unix())
	}
}
