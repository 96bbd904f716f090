package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// loopbackAddress is HOST:PORT on this machine alone. The zero value stands for none.
type loopbackAddress string

// UnmarshalText refuses addresses that others could reach: a profile holds what is in memory.
func (a *loopbackAddress) UnmarshalText(text []byte) error {
	var address listenAddress
	if err := address.UnmarshalText(text); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(string(text))
	if err != nil {
		return fmt.Errorf("read address: %w", err)
	}
	if !isLoopback(host) {
		return fmt.Errorf("%q is not a loopback address such as 127.0.0.1", host)
	}
	*a = loopbackAddress(text)
	return nil
}

// isLoopback tells whether a host is an IP address that only this machine reaches.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// serveProfiles serves what net/http/pprof knows until ctx is done.
func serveProfiles(ctx context.Context, address loopbackAddress, log *serveLog) error {
	if address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", string(address))
	if err != nil {
		return fmt.Errorf("listen for profiles: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	profiles := &http.Server{
		Handler:           onlyFor(listener.Addr().String(), mux),
		ReadHeaderTimeout: time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	context.AfterFunc(ctx, func() { _ = profiles.Close() })
	go func() { _ = profiles.Serve(listener) }()
	log.say(slog.LevelInfo, fmt.Sprintf("serving profiles on http://%s", listener.Addr()))
	return nil
}

// onlyFor refuses requests for another host than the address. A page in a browser on this machine sends such requests
// when the name that it came from is made to lead here (DNS rebinding).
func onlyFor(address string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(address)
		if r.Host != address && r.Host != net.JoinHostPort("localhost", port) {
			http.Error(w, "profiles are served on http://"+address, http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
