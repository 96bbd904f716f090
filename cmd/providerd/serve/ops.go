package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/providerd/cmd/providerd/manual"
	"example.com/providerd/server"
	"example.com/providerd/server/listener"
)

const (
	// maxOpsConnections is enough for a few operators and their monitoring.
	maxOpsConnections = 64
	// maxScrapes is how many scrapes run at a time; further ones get 503.
	maxScrapes = 8
	// opsDrainTimeout is how long shutdown waits for responses on the ops listener.
	opsDrainTimeout = time.Second
	// maxProfileSeconds is how long a profile may take.
	maxProfileSeconds = 60
)

// newRegistry returns a new registry with the metrics of the process and of its log. The global registry is not used.
func newRegistry(log *serveLog) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewBuildInfoCollector(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(registry).NewCounterFunc(prometheus.CounterOpts{
		Name: "providerd_log_lines_dropped_total",
		Help: "Log lines dropped because standard error did not accept them.",
	}, func() float64 { return float64(log.output.dropped.Load()) })
	return registry
}

// serveOps serves the ops listener until stop is called, so that operators can watch the shutdown.
func serveOps(
	ctx context.Context, api *server.Server, registry *prometheus.Registry, ops net.Listener, log *serveLog,
) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	limits := listener.DefaultLimits()
	limits.Connections, limits.DrainTimeout = maxOpsConnections, opsDrainTimeout
	// A profile ends if its caller disconnects.
	limits.NoticeHangUps = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := listener.Serve(ctx, ops, opsHandler(api, registry, log.Logger), limits, nil, log.Logger); err != nil {
			log.Warn("ops listener failed", slog.String("error", err.Error()))
		}
	}()
	log.messages.Note("serving metrics, health, the manual and pprof profiles on http://%s", reachable(ops.Addr()))
	if !isLoopback(hostOf(ops.Addr().String())) {
		log.messages.Warn("anyone who can reach %s can read the metrics, because it is not a loopback address; restrict "+
			"access to your monitoring (pprof profiles are served to loopback clients only)", ops.Addr())
	}
	return func() {
		cancel()
		<-ended
	}
}

// opsHandler serves metrics, pprof profiles, the manual, and the health endpoints of the API.
func opsHandler(api http.Handler, registry *prometheus.Registry, logger *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml", "/pages.css", "/pages.js"} {
		mux.Handle(path, api)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelError), MaxRequestsInFlight: maxScrapes,
	}))
	mux.Handle("/debug/pprof/", loopbackOnly(http.HandlerFunc(serveProfile)))
	manual.Register(mux)
	return mux
}

// serveProfile serves a profile, unless it would take too long. Execution traces and the command line are not served.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseFloat(cmp.Or(r.FormValue("seconds"), "1"), 64)
	switch {
	case err != nil, !(seconds > 0 && seconds <= maxProfileSeconds):
		http.Error(w, fmt.Sprintf("seconds must be a number above 0 and at most %d", maxProfileSeconds),
			http.StatusBadRequest)
	case r.URL.Path == "/debug/pprof/profile":
		pprof.Profile(w, r)
	default:
		pprof.Index(w, r)
	}
}

// loopbackOnly refuses requests from other machines, because a profile reveals what is in memory. It also refuses
// requests whose Host is not a loopback name or address: a page in a local browser could send them after its host name
// was made to resolve to this machine (DNS rebinding).
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(hostOf(r.RemoteAddr)) {
			http.Error(w, "pprof profiles are served to loopback clients only", http.StatusForbidden)
			return
		}
		if host := hostOf(r.Host); host != "localhost" && !isLoopback(host) {
			http.Error(w, "pprof profiles require localhost or a loopback address as Host", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns an address without its port, if it has one.
func hostOf(address string) string { return (&url.URL{Host: address}).Hostname() }

func isLoopback(host string) bool { return net.ParseIP(host).IsLoopback() }
