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

// telemetry observes a server until stop is called, and returns the setting that lets it.
type telemetry func(ctx context.Context) (setting string, stop func() error)

// scraped reads the metrics once per second, as Prometheus does.
func scraped(ctx context.Context) (setting string, stop func() error) {
	free := httptest.NewServer(nil)
	free.Close()
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		err := errors.New("the metrics were never scraped")
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				err = scrape(context.WithoutCancel(ctx), free.URL+"/metrics")
			}
		}
		failed <- err
	}()
	return "PROVIDERD_OPS_LISTEN=" + free.Listener.Addr().String(), func() error { cancel(); return <-failed }
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
func collected(context.Context) (setting string, stop func() error) {
	var exports atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		exports.Add(1)
	}))
	return "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, func() error {
		collector.Close()
		if exports.Load() == 0 {
			return errors.New("no traces were exported")
		}
		return nil
	}
}
