// Package serve implements "providerd serve": it listens, opens the database, writes the log, serves metrics and health
// to operators, notifies the service manager, and shuts down gracefully. Package server handles the requests.
//
// Start with Command.Run.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server"
	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
)

// Command has the flags of "providerd serve".
type Command struct {
	console.DatabaseFlags
	Listen         console.ListenAddress `default:"127.0.0.1:8080" env:"PROVIDERD_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on; port 0 picks a free port (${env}; default ${default})."`
	MaxConnections console.Positive      `default:"1024" env:"PROVIDERD_MAX_CONNECTIONS" placeholder:"N" help:"Maximum number of connections; at the limit, the one that has been idle longest is closed (${env}; default ${default})."`
	FailedAttempts console.Positive      `default:"20" env:"PROVIDERD_FAILED_ATTEMPTS" placeholder:"N" help:"Invalid tokens that a client address may send per minute before it is refused with 429 (${env}; default ${default})."`
	RateLimit      console.RateLimit     `env:"PROVIDERD_RATE_LIMIT" placeholder:"N/s" help:"Requests that all tokens of one name may send per second (100/s), minute (100/m) or hour (100/h) (${env}; default no limit)."`
	TLSCert        string                `env:"PROVIDERD_TLS_CERT" and:"tls" type:"path" placeholder:"PATH" help:"PEM certificate chain for HTTPS; reloaded when it changes (${env}; default none)."`
	TLSKey         string                `env:"PROVIDERD_TLS_KEY" and:"tls" type:"path" placeholder:"PATH" help:"PEM private key of the certificate; reloaded when it changes (${env}; default none)."`
	TrustedProxy   []console.Network     `env:"PROVIDERD_TRUSTED_PROXY" placeholder:"CIDR" help:"Network, such as 10.0.0.0/8, of proxies that report client addresses in X-Forwarded-For; repeatable (${env}; default none)."`
	DrainDelay     time.Duration         `default:"0s" env:"PROVIDERD_DRAIN_DELAY" placeholder:"TIME" help:"How long to keep serving, with /readyz failing, after a stop signal; at most 10m (${env}; default ${default})."`
	LogFormat      string                `default:"text" enum:"text,json" env:"PROVIDERD_LOG_FORMAT" help:"Format of the log on standard error: ${enum} (${env}; default ${default})."`
	LogLevel       slog.Level            `default:"info" env:"PROVIDERD_LOG_LEVEL" placeholder:"LEVEL" help:"Minimum log level: debug, info, warn or error (${env}; default ${default})."`
	OpsListen      console.ListenAddress `env:"PROVIDERD_OPS_LISTEN" placeholder:"HOST:PORT" help:"Address of the ops listener: metrics, health, the manual, and pprof profiles for loopback clients (${env}; default none)."`
}

// Validate reports flags that are out of range, or that contradict each other.
func (c Command) Validate() error {
	if _, port, _ := net.SplitHostPort(string(c.Listen)); c.OpsListen == c.Listen && port != "0" {
		return errors.New("--listen and --ops-listen must differ")
	}
	if c.DrainDelay < 0 || c.DrainDelay > maxDrainDelay {
		return fmt.Errorf("--drain-delay must be between 0s and %s", maxDrainDelay)
	}
	return nil
}

// Version identifies the program in traces.
type Version string

// VariableWarnings are sentences about mistyped environment variables.
type VariableWarnings []string

// Help is the long help text.
func (Command) Help() string {
	return "Creates the database if it does not exist, readable only by its owner, and migrates it to the schema " +
		"version of this program. If a SQLite database has no token, creates the file initial-token next to it, with a " +
		"token that allows all operations. Prints the address when ready. On SIGTERM or SIGINT, or when its terminal " +
		"closes, /readyz fails immediately, the server stops listening after --drain-delay, and requests in flight are " +
		"finished; a second SIGTERM or SIGINT stops the server immediately. Without a terminal, SIGHUP does nothing: " +
		"replaced files are read without a signal. Notifies systemd and its watchdog. Exports traces to the " +
		"OpenTelemetry collector at OTEL_EXPORTER_OTLP_ENDPOINT."
}

// heapReserve is the size of an allocation that is never touched, and so takes no memory. Without it, the garbage
// collector would run hundreds of times a second on the small heap; a higher GOGC would also multiply a large heap.
const heapReserve = 32 << 20

// memoryLimit keeps the process under 256 MiB, with room for SQLite and the program itself. Near it, the garbage
// collector runs more often instead of letting the heap double. The server bounds the live heap well below it.
const memoryLimit = 176 << 20

// Run serves until the process receives a stop signal.
func (c *Command) Run(
	ctx context.Context, contract *contract.Document, version Version, warnings VariableWarnings,
	messages *console.Messages,
) error {
	ctx, stop := untilStopped(ctx)
	defer stop()
	log := newServeLog(messages, c.LogFormat, c.LogLevel)
	defer log.output.close()
	for _, warning := range append(warnings, c.Warnings()...) {
		log.messages.Warn("%s", warning)
	}
	if err := c.open(ctx, contract, version, log); err != nil {
		log.messages.Error(console.Explain(err))
		return console.ErrReported
	}
	return nil
}

// untilStopped returns a context that is canceled by the first stop signal. A second one ends the process immediately,
// except SIGHUP, which some programs send along with the first.
func untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	terminal, err := os.Open("/dev/tty")
	_ = terminal.Close()
	// nohup ignores SIGHUP, so that the server outlives the terminal. Without a terminal it asks for a reload.
	if !signal.Ignored(syscall.SIGHUP) && err == nil {
		signals = append(signals, syscall.SIGHUP)
	} else {
		signal.Ignore(syscall.SIGHUP)
	}
	signaled, release := signal.NotifyContext(ctx, signals...)
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(signaled, func() {
		signal.Ignore(syscall.SIGHUP)
		release()
		// The second signal may follow as soon as the server is seen stopping, and must not be caught then.
		stop()
	})
	return stopped, release
}

// endpoint has the listeners of the server. It serves HTTPS unless security is nil.
type endpoint struct {
	net.Listener
	security *tls.Config
	// ops is the ops listener, or nil.
	ops net.Listener
}

func (e endpoint) url() string {
	if e.security == nil {
		return "http://" + reachable(e.Addr())
	}
	return "https://" + reachable(e.Addr())
}

// reachable returns the address of a listener, or a loopback address if it listens on all, because browsers do not open
// 0.0.0.0. A listener on [::] accepts IPv4 too, which every host has.
func reachable(listening net.Addr) string {
	if tcp, ok := listening.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return listening.String()
}

func (c *Command) open(ctx context.Context, contract *contract.Document, version Version, log *serveLog) (err error) {
	// Listen first, so that nothing is created on disk if an address is in use.
	var at endpoint
	if at.Listener, err = listenOn(ctx, c.Listen, "listen"); err != nil {
		return err
	}
	defer func() { _ = at.Close() }()
	if c.OpsListen != "" {
		if at.ops, err = listenOn(ctx, c.OpsListen, "ops-listen"); err != nil {
			return err
		}
		defer func() { _ = at.ops.Close() }()
	}
	if at.security, err = newTLSConfig(c.TLSCert, c.TLSKey, log.Logger); err != nil {
		return err
	}
	unlock, err := c.lockDatabase(ctx, log)
	switch {
	case errors.Is(err, context.Canceled):
		// A signal arrived before the other server had stopped.
		return nil
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	database, err := createStore(ctx, c.DatabaseFlags, log)
	if err != nil {
		return err
	}
	err = c.ensureInitialToken(ctx, database, contract.OperationIDs(), log)
	if err == nil {
		err = c.serve(ctx, server.Config{
			Contract: contract, Store: database, Version: string(version), Logger: log.Logger, Proxies: c.proxies(),
			FailedAttempts: int(c.FailedAttempts), RateLimit: server.RateLimit(c.RateLimit),
		}, at, log)
	}
	return errors.Join(err, database.Close())
}

// Warnings returns sentences about values that are valid, but probably not meant.
func (c *Command) Warnings() (warnings []string) {
	const largestPrivate = 7 // fc00::/7
	for _, network := range c.proxies() {
		if network.Bits() < largestPrivate {
			warnings = append(warnings, fmt.Sprintf("--trusted-proxy: %s is larger than any private network, so that callers "+
				"choose the address that is logged, audited and limited; pass only the networks of your proxies", network))
		}
	}
	isDefault := c.Database.Text == console.DefaultDatabase && os.Getenv("PROVIDERD_DATABASE") == ""
	for _, variable := range []string{"PGHOST", "PGDATABASE", "PGSERVICE"} {
		if isDefault && os.Getenv(variable) != "" {
			return append(warnings, variable+" is set, but the database is SQLite; for PostgreSQL, pass --database "+
				"postgres://USER@HOST/DATABASE")
		}
	}
	return warnings
}

func (c *Command) proxies() (proxies server.Proxies) {
	for _, network := range c.TrustedProxy {
		proxies = append(proxies, netip.Prefix(network))
	}
	return proxies
}

// listenOn listens on the address of a flag. With the network tcp, 0.0.0.0 would include all IPv6 addresses.
func listenOn(ctx context.Context, address console.ListenAddress, flag string) (net.Listener, error) {
	network := "tcp"
	if at, err := netip.ParseAddrPort(string(address)); err == nil && at.Addr().Unmap().Is4() {
		network = "tcp4"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, network, string(address))
	source := console.Source(flag, string(address))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use; stop the other process or use another port", source, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: %s is not an address of this host; use one that is, or 0.0.0.0 for all", source, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: ports below 1024 require a privilege; use a higher port or grant CAP_NET_BIND_SERVICE",
			source)
	case err != nil:
		return nil, fmt.Errorf("%s: %w; use an address of this host, or 0.0.0.0 for all", source, err)
	}
	return listener, nil
}

func (c *Command) serve(ctx context.Context, config server.Config, at endpoint, log *serveLog) error {
	var registry *prometheus.Registry
	if at.ops != nil {
		registry = newRegistry(log)
		watchExpiry(registry, at.security)
		config.Metrics = server.NewMetrics(registry, config.Contract, config.Store)
	}
	traces, flushTraces := startTraces(ctx, log, config.Version)
	defer flushTraces()
	if traces != nil {
		config.Traces = server.NewTraces(traces)
	}
	api, err := server.New(config)
	if err != nil {
		return err
	}
	if at.security == nil {
		warnOfPlainHTTP(log, at.Addr())
	}
	if at.ops != nil {
		defer serveOps(ctx, api, registry, at.ops, log)()
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	reserve := make([]byte, heapReserve)
	defer runtime.KeepAlive(reserve)
	ctx, stop := drainAfter(ctx, c.DrainDelay, api, log.Logger)
	defer stop()
	go pingWatchdog()
	notifyManager(daemon.SdNotifyReady + "\nSTATUS=serving on " + at.url())
	log.messages.Note("serving the API at %s/api/v3/; its documentation is at %[1]s/docs/", at.url())
	go func() {
		// This is for programs that wait for the URL. The server continues if it fails or blocks.
		if _, err := fmt.Fprintln(os.Stdout, "listening on "+at.url()); err != nil {
			log.Warn("cannot print listen URL", slog.String("error", err.Error()))
		}
	}()
	limits := listener.DefaultLimits()
	limits.Connections, limits.IsProxy = int(c.MaxConnections), config.Proxies.Include
	if err := listener.Serve(ctx, at, api, limits, at.security, log.Logger); err != nil {
		return err
	}
	log.Info("server stopped")
	return nil
}
