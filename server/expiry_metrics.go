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
	// readAt is when tokens and keyCreated were read.
	readAt time.Time
	// tokens is nil if it could not be read, and keyCreated zero.
	tokens     *store.TokenExpiry
	keyCreated time.Time
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
	if c.tokens != nil {
		sendGauge(out, "expiring_callers", "Callers left without a valid token within 14 days, or since 14 days.",
			c.tokens.Callers)
		sendTime(out, "token_expiry_timestamp_seconds", "When the first caller is left without a valid token. The newest "+
			"token of a caller counts, if its lifetime is longer than 14 days.", c.tokens.First)
	}
	sendTime(out, "key_created_timestamp_seconds", "When the newest data key was created.", c.keyCreated)
}

func (c *expiryCollector) read() {
	ctx, cancel := context.WithTimeout(context.Background(), expiryTimeout)
	defer cancel()
	c.readAt = time.Now()
	c.tokens = nil
	if tokens, err := c.store.TokenExpiry(ctx, expiryNotice); err == nil {
		c.tokens = &tokens
	}
	// If they cannot be read, the log and the readiness say why.
	c.keyCreated, _ = c.store.NewestKeyCreated(ctx)
}

// sendTime sends a time, unless it is unknown.
func sendTime(out chan<- prometheus.Metric, name, help string, at time.Time) {
	if !at.IsZero() {
		sendGauge(out, name, help, at.Unix())
	}
}
