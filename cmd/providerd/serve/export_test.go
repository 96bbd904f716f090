package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
)

// ReloadInterval is how often the certificate files are checked at most.
const ReloadInterval = reloadInterval

// NewTLSConfig returns a configuration that reloads the certificate and its key when they change.
func NewTLSConfig(cert, key string, logger *slog.Logger) (*tls.Config, error) {
	return newTLSConfig(cert, key, logger)
}

// Watch pings the watchdog of the service manager until ctx is canceled.
func Watch(ctx context.Context) { serviceManager{slog.New(slog.DiscardHandler)}.watch(ctx) }
