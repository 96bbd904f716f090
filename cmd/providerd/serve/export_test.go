package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
)

// ReloadInterval lies between two looks at the files of a certificate.
const ReloadInterval = reloadInterval

// NewTLSConfig reads a certificate and its key again as they change.
func NewTLSConfig(cert, key string, logger *slog.Logger) (*tls.Config, error) {
	return newTLSConfig(cert, key, logger)
}

// Watch tells the service manager again and again that the server lives.
func Watch(ctx context.Context) { serviceManager{slog.New(slog.DiscardHandler)}.watch(ctx) }
