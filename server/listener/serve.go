// Package listener serves HTTP/1.1 over a bounded number of connections: how many are open, how long each may take, and
// which one is closed to make room for another. It does not know what a request asks for: the handler marks when a
// caller is known (MarkTransferring) and when work begins (MarkWorking). What a body may cost is bounded by server.
//
// Start with Serve in serve.go; connections.go decides which connection is closed, connection.go notes what each is at.
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

// Limits bound what a connection may cost.
type Limits struct {
	// Connections is how many are open at a time. At the limit, the connection that has been idle longest is closed to
	// make room, or else the one that has gone longest without a valid token, or else that of TransferGrace.
	Connections int
	// TransferGrace is how long a caller with a valid token may take to send a body or to read a response before the
	// connection that has taken longest is closed to make room.
	TransferGrace time.Duration
	// HeaderBytes bounds the request line and the header, for which the HTTP library adds 4 KiB. Each field of few bytes
	// takes many times its size.
	HeaderBytes int
	// HeaderTimeout is how long the header may take to arrive.
	HeaderTimeout time.Duration
	// RequestTimeout is how long the header and the body together may take to arrive.
	RequestTimeout time.Duration
	// AnswerTimeout is how long the caller may take to send the body and to read the response. A request is worked on for
	// at most five sixths of it.
	AnswerTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration
	// DrainTimeout is how long the requests that have begun may take once the server stops.
	DrainTimeout time.Duration
}

// DefaultLimits are for a server that anyone on its network can reach.
func DefaultLimits() Limits {
	return Limits{
		Connections:    1024,
		TransferGrace:  2 * time.Second,
		HeaderBytes:    4 << 10,
		HeaderTimeout:  10 * time.Second,
		RequestTimeout: 30 * time.Second,
		AnswerTimeout:  60 * time.Second,
		IdleTimeout:    30 * time.Second,
		DrainTimeout:   30 * time.Second,
	}
}

// Serve lets a handler answer the requests that come to a listener until ctx is done, then takes no new ones and waits
// for those that have begun. It speaks HTTP/1.1, inside of TLS unless security is nil. What the HTTP library reports
// goes to the logger. It returns nil if all requests were answered.
func Serve(
	ctx context.Context, listener net.Listener, handler http.Handler, limits Limits, security *tls.Config,
	logger *slog.Logger,
) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	open := limitConnections(listener, limits.Connections, limits.TransferGrace)
	httpServer := &http.Server{
		Handler:           open.yielding(handler),
		ConnContext:       open.context,
		ConnState:         open.note,
		MaxHeaderBytes:    limits.HeaderBytes,
		ReadHeaderTimeout: limits.HeaderTimeout,
		ReadTimeout:       limits.RequestTimeout,
		WriteTimeout:      limits.AnswerTimeout,
		IdleTimeout:       limits.IdleTimeout,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		// OPTIONS * is answered like any other path.
		DisableGeneralOptionsHandler: true,
		Protocols:                    protocols,
		TLSConfig:                    security,
	}
	failed := make(chan error, 1)
	go func() {
		if security == nil {
			failed <- httpServer.Serve(open)
			return
		}
		failed <- httpServer.ServeTLS(open, "", "")
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.DrainTimeout)
	defer cancel()
	if err := httpServer.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("drain: %w", err), httpServer.Close())
	}
	return nil
}
