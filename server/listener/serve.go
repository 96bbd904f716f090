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
	// TransferGrace is how long a caller with a valid token may take to send a body or to read a response before the
	// connection that has taken longest is closed to make room.
	TransferGrace time.Duration
	// HeaderBytes limits the request line and header; net/http adds 4 KiB. A short field takes many times its size in
	// memory.
	HeaderBytes int
	// HeaderTimeout is how long the header may take to arrive.
	HeaderTimeout time.Duration
	// RequestTimeout is how long the header and the body together may take to arrive.
	RequestTimeout time.Duration
	// ResponseTimeout is how long the caller may take to send the body and to read the response. A request is handled for
	// at most five sixths of it.
	ResponseTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request, and ProxyIdleTimeout the same for those that
	// IsProxy reports to come from a proxy: a proxy that sends a request just when its connection is closed must not send
	// it again, and many keep connections for longer than IdleTimeout. IsProxy may be nil.
	IdleTimeout, ProxyIdleTimeout time.Duration
	IsProxy                       func(peer net.Addr) bool
	// DrainTimeout is how long requests in flight may take once the server stops, and drainGrace how long the responses
	// to bodies that did not arrive until then. If it is not shorter than RequestTimeout, callers who send nothing cannot
	// make the drain fail.
	DrainTimeout time.Duration
	// NoticeHangUps makes the context of a request end if its caller disconnects, at a twentieth of the CPU of a create.
	// Within TLS it always does.
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

// Serve serves HTTP/1.1 on a listener until ctx is done; then it accepts no new requests and waits for those in flight.
// It uses TLS unless security is nil; peers that do then are logged. Errors of the HTTP library are logged at level
// debug. Serve returns nil if all requests in flight were completed, and an error if listening fails or the drain
// timeout expires.
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
