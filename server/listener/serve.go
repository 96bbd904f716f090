// Package listener serves HTTP/1.1 over a limited number of connections. It limits how long each may take, and decides
// which one is closed to make room for another. It does not interpret requests: the handler marks when the caller is
// authenticated (MarkTransferring) and when the request is complete (MarkWorking). Package server limits bodies.
//
// Start with Serve in serve.go; connections.go decides which connection is closed, connection.go tracks their phases.
package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits limits what a connection may cost.
type Limits struct {
	// Connections is how many are open at a time. At the limit, the connection that has been idle longest is closed to
	// make room; if none is idle, the one that has gone longest without a valid token; otherwise see TransferGrace.
	Connections int
	// Grace is how long a connection that is idle or has no valid token is kept when another needs its place: long enough
	// for a request to arrive and be handled, short enough for the newcomer to wait.
	Grace time.Duration
	// TransferGrace is how long a body or response of a valid token's caller may take before another may take its place.
	TransferGrace time.Duration
	// HeaderBytes limits the request line and header, whose short fields take much memory; net/http adds 4 KiB.
	HeaderBytes int
	// HeaderTimeout is how long the header may take to arrive.
	HeaderTimeout time.Duration
	// RequestTimeout is how long the header and the body together may take to arrive.
	RequestTimeout time.Duration
	// ResponseTimeout is how long sending the body and reading the response may take; handling takes five sixths at most.
	ResponseTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request, and ProxyIdleTimeout the same for those that
	// IsProxy reports to come from a proxy: a proxy that sends a request just when its connection is closed must not send
	// it again, and many keep connections for longer than IdleTimeout. IsProxy may be nil.
	IdleTimeout, ProxyIdleTimeout time.Duration
	IsProxy                       func(peer net.Addr) bool
	// DrainTimeout is how long requests in flight may take once the server stops, and drainGrace the responses to bodies
	// that did not arrive by then. Unless it is shorter than RequestTimeout, silent callers cannot make the drain fail.
	DrainTimeout time.Duration
	// NoticeHangUps makes a request's context end if its caller disconnects, for 5% of a create's CPU. TLS always does.
	NoticeHangUps bool
}

const drainGrace = time.Second

// DefaultLimits returns limits for a server that anyone on its network can reach.
func DefaultLimits() Limits {
	return Limits{
		Connections:      1024,
		Grace:            500 * time.Millisecond,
		TransferGrace:    2 * time.Second,
		HeaderBytes:      12 << 10,
		HeaderTimeout:    10 * time.Second,
		RequestTimeout:   30 * time.Second,
		ResponseTimeout:  60 * time.Second,
		IdleTimeout:      30 * time.Second,
		ProxyIdleTimeout: 11 * time.Minute,
		DrainTimeout:     30 * time.Second,
	}
}

// Serve serves HTTP/1.1 on a listener until ctx is done, and then only requests in flight. It uses TLS unless security
// is nil; it then logs peers that do. Errors of the HTTP library are logged at level debug. It returns an error if
// listening fails or the drain timeout expires.
func Serve(
	ctx context.Context, listener net.Listener, handler http.Handler, limits Limits, security *tls.Config,
	logger *slog.Logger,
) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	if security != nil {
		security = security.Clone()
		security.NextProtos = []string{"http/1.1"}
	}
	open := limitConnections(listener, limits, security, logger)
	httpServer := &http.Server{
		Handler:           open.closeWhileWaiting(handler),
		ConnContext:       open.context,
		ConnState:         open.stateChanged,
		MaxHeaderBytes:    limits.HeaderBytes,
		ReadHeaderTimeout: limits.HeaderTimeout,
		ReadTimeout:       limits.RequestTimeout,
		WriteTimeout:      limits.ResponseTimeout,
		IdleTimeout:       limits.IdleTimeout,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		// OPTIONS * is handled like any other path.
		DisableGeneralOptionsHandler: true,
		Protocols:                    protocols,
	}
	failed := make(chan error, 1)
	go func() { failed <- httpServer.Serve(open) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.DrainTimeout+drainGrace)
	defer cancel()
	if err := httpServer.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("drain: %w", err), httpServer.Close())
	}
	return nil
}
