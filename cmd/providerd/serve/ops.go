package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/providerd/server"
	"example.com/providerd/server/listener"
)

const (
	// maxOpsConnections are for a few operators and what watches the server for them.
	maxOpsConnections = 64
	// maxScrapes is how many read the metrics at a time; others are asked to try again.
	maxScrapes = 8
	// opsDrainTimeout is how long the end of the program waits for what an operator reads.
	opsDrainTimeout = time.Second
)

// newRegistry makes a registry with the metrics of the process and of its log. Nothing registers with the global one.
func newRegistry(log *serveLog) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewBuildInfoCollector(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	promauto.With(registry).NewCounterFunc(prometheus.CounterOpts{
		Name: "providerd_log_lines_dropped_total",
		Help: "Log lines dropped because standard error did not accept them.",
	}, func() float64 { return float64(log.output.allDropped()) })
	return registry
}

// serveOps serves what is for operators until stop is called, so that they can watch how the server ends.
func serveOps(
	ctx context.Context, api *server.Server, registry *prometheus.Registry, open net.Listener, log *serveLog,
) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	limits := listener.DefaultLimits()
	limits.Connections, limits.DrainTimeout = maxOpsConnections, opsDrainTimeout
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := listener.Serve(ctx, open, opsHandler(api, registry, log.Logger), limits, nil, log.Logger); err != nil {
			log.Warn("operators are not served any more", slog.String("error", err.Error()))
		}
	}()
	log.say(slog.LevelInfo, fmt.Sprintf("serving metrics, health and profiles on http://%s", open.Addr()))
	if !isLoopback(hostOf(open.Addr().String())) {
		log.say(slog.LevelWarn, fmt.Sprintf("whoever reaches %s reads the metrics, because it is not a loopback address; "+
			"let only what watches the server reach it (profiles are for this machine alone)", open.Addr()))
	}
	return func() {
		cancel()
		<-ended
	}
}

// opsHandler answers what is for operators. Health is what the API says.
func opsHandler(api http.Handler, registry *prometheus.Registry, logger *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", api)
	mux.Handle("/readyz", api)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelError), MaxRequestsInFlight: maxScrapes,
	}))
	mux.Handle("/debug/pprof/", onlyFromHere(newProfiles()))
	return mux
}

// onlyFromHere refuses requests from other machines, since a profile tells what is in memory, and those for another
// host than this machine. A page in a browser on this machine sends such requests when the name that it came from is
// made to lead here (DNS rebinding).
func onlyFromHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(hostOf(r.RemoteAddr)) {
			http.Error(w, "profiles are for callers on the machine of the server alone", http.StatusForbidden)
			return
		}
		if host := hostOf(r.Host); host != "localhost" && !isLoopback(host) {
			http.Error(w, "profiles are served under no other name than localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is an address without its port, if it has one.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// isLoopback tells whether a host is an IP address that only this machine reaches.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
