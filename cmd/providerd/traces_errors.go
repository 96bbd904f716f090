package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"golang.org/x/time/rate"
)

const (
	// firstSDKErrors are logged as they come, those that follow once in each sdkErrorInterval.
	firstSDKErrors   = 3
	sdkErrorInterval = time.Minute
	// maxSDKError bounds, in bytes, what a collector answers and the log holds.
	maxSDKError = 512
)

// sdkErrors logs what goes wrong with the export of traces.
type sdkErrors struct {
	logger *slog.Logger
	// collector is the URL whose path is not to be logged.
	collector *url.URL
	limit     rate.Sometimes
	// omitted counts those that were not logged since the last one that was.
	omitted atomic.Int64
}

var _ otel.ErrorHandler = (*sdkErrors)(nil)

func newSDKErrors(collector *url.URL, logger *slog.Logger) *sdkErrors {
	return &sdkErrors{
		logger: logger, collector: collector, limit: rate.Sometimes{First: firstSDKErrors, Interval: sdkErrorInterval},
	}
}

// Handle logs an error, or counts it for the next one that is logged.
func (e *sdkErrors) Handle(err error) {
	e.omitted.Add(1)
	e.limit.Do(func() {
		text := err.Error()
		if broken, ok := errors.AsType[*url.Error](err); ok {
			text = broken.Err.Error()
		}
		text = strings.ReplaceAll(text, e.collector.String(), originOf(e.collector))
		e.logger.Warn("traces are not exported as they should be",
			slog.String("error", shortened(text, maxSDKError)), slog.Int64("omitted", e.omitted.Swap(0)-1))
	})
}

// sdkLog logs which variables of the environment the SDK cannot read. Their values may be secrets, and are left out.
type sdkLog struct{ logger *slog.Logger }

var _ logr.LogSink = sdkLog{}

// Init does nothing.
func (sdkLog) Init(logr.RuntimeInfo) {}

// Enabled tells that nothing but errors is logged.
func (sdkLog) Enabled(int) bool { return false }

// Info does nothing.
func (sdkLog) Info(int, string, ...any) {}

// Error logs what could not be done, and with which file.
func (l sdkLog) Error(err error, message string, _ ...any) {
	attributes := []any{slog.String("failed", message)}
	if broken, ok := errors.AsType[*fs.PathError](err); ok {
		attributes = append(attributes, slog.String("error", broken.Error()))
	}
	l.logger.Warn("a variable OTEL_EXPORTER_OTLP_* is not followed", attributes...)
}

// WithValues returns the same, since no values are logged.
func (l sdkLog) WithValues(...any) logr.LogSink { return l }

// WithName returns the same, since there is one name.
func (l sdkLog) WithName(string) logr.LogSink { return l }
