package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// telemetry observes a server until stop is called, and returns the settings that let it.
type telemetry func(ctx context.Context) (settings []string, stop func() error, err error)

// scraped reads the metrics once per second, as Prometheus does.
func scraped(ctx context.Context) (settings []string, stop func() error, err error) {
	free := httptest.NewServer(nil)
	free.Close()
	address := free.Listener.Addr().String()
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		last := errors.New("the metrics were never scraped")
		for {
			select {
			case <-ctx.Done():
				failed <- last
				return
			case <-ticker.C:
				last = scrape(context.WithoutCancel(ctx), "http://"+address+"/metrics")
			}
		}
	}()
	return []string{"PROVIDERD_OPS_LISTEN=" + address}, func() error { cancel(); return <-failed }, nil
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
	if err != nil || !bytes.Contains(text, []byte("providerd_request_duration_seconds")) {
		return fmt.Errorf("scrape metrics: %s: %.200s, %w", response.Status, text, err)
	}
	return nil
}

// collected discards traces in this process, whose CPU time is not measured.
func collected(context.Context) (settings []string, stop func() error, err error) {
	var exports atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		exports.Add(1)
	}))
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}, func() error {
		collector.Close()
		if exports.Load() == 0 {
			return errors.New("no traces were exported")
		}
		return nil
	}, nil
}
