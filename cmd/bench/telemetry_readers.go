package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// collector discards traces. It runs in this process, whose CPU time is not measured.
type collector struct {
	url    string
	server *http.Server
	// exports counts the exports received.
	exports atomic.Int64
}

func startCollector(ctx context.Context) (*collector, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", freePort)
	if err != nil {
		return nil, fmt.Errorf("listen for traces: %w", err)
	}
	started := &collector{url: "http://" + listener.Addr().String()}
	started.server = &http.Server{Handler: started, ReadHeaderTimeout: 10 * time.Second}
	// Serve returns when the collector is stopped. If it fails before, exports do.
	go func() { _ = started.server.Serve(listener) }()
	return started, nil
}

// ServeHTTP reads an export.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.exports.Add(1)
}

func (c *collector) stop() error {
	if err := c.server.Close(); err != nil {
		return fmt.Errorf("stop collector: %w", err)
	}
	return nil
}

// scrapeEachSecond scrapes metrics, as Prometheus does, until ctx is canceled.
func scrapeEachSecond(ctx context.Context, url string) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		if err := scrape(ctx, url); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// scrape reads metrics once. It returns an error if those of requests are missing.
func scrape(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("scrape metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("scrape metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("scrape metrics: %w", err)
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("providerd_request_duration_seconds")) {
		return fmt.Errorf("scrape metrics: %s: %.200s", response.Status, text)
	}
	return nil
}

// freeAddress returns an address that is not in use.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", freePort)
	if err != nil {
		return "", fmt.Errorf("find a free address: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", fmt.Errorf("find a free address: %w", err)
	}
	return address, nil
}
