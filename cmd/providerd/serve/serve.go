// Package serve is the command that serves the API: it opens the database, takes the addresses, writes the log, tells
// operators and the service manager how the server is, and ends it in good order. Requests are answered in server.
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
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/cmd/providerd/tracing"
	"example.com/providerd/server"
	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
)

// Command has the flags of "providerd serve".
type Command struct {
	flags.DatabaseFlags
	Listen         flags.ListenAddress `default:"127.0.0.1:8080" env:"PROVIDERD_LISTEN" placeholder:"HOST:PORT" help:"Address to listen on; port 0 takes a free one (${env}; default ${default})."`
	MaxConnections int                 `default:"1024" env:"PROVIDERD_MAX_CONNECTIONS" placeholder:"N" help:"Connections that are open at a time; for a further one, the one that is idle for longest is closed (${env}; default ${default})."`
	FailedAttempts int                 `default:"20" env:"PROVIDERD_FAILED_ATTEMPTS" placeholder:"N" help:"Invalid tokens that an address may send in a minute; further ones are answered 429 (${env}; default ${default})."`
	RateLimit      flags.RateLimit     `env:"PROVIDERD_RATE_LIMIT" placeholder:"N/s" help:"Requests that the tokens of one name may send to this server, in a second (100/s), minute (m) or hour (h) (${env}; default no limit)."`
	TLSCert        string              `env:"PROVIDERD_TLS_CERT" and:"tls" type:"path" placeholder:"PATH" help:"Certificate chain in PEM, to serve HTTPS; read again when it changes (${env})."`
	TLSKey         string              `env:"PROVIDERD_TLS_KEY" and:"tls" type:"path" placeholder:"PATH" help:"Private key of the certificate in PEM (${env})."`
	DrainDelay     time.Duration       `default:"0s" env:"PROVIDERD_DRAIN_DELAY" placeholder:"TIME" help:"How long to go on serving, but not ready, when told to stop, so that load balancers notice: up to 10m (${env}; default ${default})."`
	LogFormat      string              `default:"text" enum:"text,json" env:"PROVIDERD_LOG_FORMAT" help:"Format of the log on standard error: ${enum} (${env}; default ${default})."`
	LogLevel       flags.LogLevel      `default:"info" env:"PROVIDERD_LOG_LEVEL" placeholder:"LEVEL" help:"Minimum log level: debug, info, warn or error (${env}; default ${default})."`
	OpsListen      flags.ListenAddress `env:"PROVIDERD_OPS_LISTEN" placeholder:"HOST:PORT" help:"Address that is for operators, with metrics, health, and profiles for callers on this machine (${env}; default none)."`
}

// Validate refuses a server that nobody could reach.
func (c Command) Validate() error {
	if c.MaxConnections < 1 {
		return errors.New("--max-connections must be at least 1")
	}
	if c.FailedAttempts < 1 {
		return errors.New("--failed-attempts must be at least 1")
	}
	if _, port, _ := net.SplitHostPort(string(c.Listen)); c.OpsListen == c.Listen && port != "0" {
		return errors.New("--listen and --ops-listen must differ")
	}
	if c.DrainDelay < 0 || c.DrainDelay > maxDrainDelay {
		return fmt.Errorf("--drain-delay must be from 0s to %s", maxDrainDelay)
	}
	return nil
}

// Version is the version of the program that serves, of which traces tell.
type Version string

// Help is the long help text.
func (Command) Help() string {
	return "Creates the database where there is none, readable by its owner alone, and migrates it to the version of " +
		"this program. Where the database has no token, writes one that allows both operations to the file initial-token " +
		"beside it. Once ready, prints the address. On SIGTERM, SIGINT and SIGHUP, /readyz fails " +
		"at once, the address closes after --drain-delay, and the requests that have begun are ended; a second SIGTERM or " +
		"SIGINT ends it at once. systemd is told of all this, and its watchdog is served. Traces are exported to the " +
		"OpenTelemetry collector that OTEL_EXPORTER_OTLP_ENDPOINT names."
}

// heapReserve is counted by the garbage collector, but never touched and so takes no memory. So little lives that the
// collector would run hundreds of times a second without it; a higher GOGC would multiply a large heap, too.
const heapReserve = 12 << 20

// memoryLimit makes the garbage collector run more often near it, where it would otherwise let the heap grow to twice
// what lives. The server bounds what lives well below it, and SQLite and the program itself need room beside it, so
// that the process stays under 256 MiB.
const memoryLimit = 176 << 20

// Run serves until the process is told to stop.
func (c *Command) Run(ctx context.Context, contract *contract.Document, version Version, say *console.Messages) error {
	ctx, stop := untilStopped(ctx)
	defer stop()
	log := newServeLog(say, c.LogFormat, slog.Level(c.LogLevel))
	defer log.output.close()
	if err := c.open(ctx, contract, version, log); err != nil {
		log.say(slog.LevelError, console.Explain(err).Error())
		return console.ErrSaid
	}
	return nil
}

// untilStopped returns a context that ends with the first signal that tells the process to stop. A second one ends the
// process at once, but for SIGHUP, which some send along with the first.
func untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		// Otherwise nohup asked to stay.
		signals = append(signals, syscall.SIGHUP)
	}
	signaled, release := signal.NotifyContext(ctx, signals...)
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(signaled, func() {
		signal.Ignore(syscall.SIGHUP)
		release()
		// Whoever sees the server stop may send the second signal, which must not be caught any more.
		stop()
	})
	return stopped, release
}

// endpoint is where callers reach the server, inside of TLS unless security is nil.
type endpoint struct {
	net.Listener
	security *tls.Config
	// ops is where operators reach it; nil where they do not.
	ops net.Listener
}

// url is the base URL of the server.
func (e endpoint) url() string {
	if e.security == nil {
		return "http://" + e.Addr().String()
	}
	return "https://" + e.Addr().String()
}

// close gives the addresses back, as far as they were taken.
func (e endpoint) close() {
	for _, listener := range []net.Listener{e.Listener, e.ops} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// open gets what a server needs, and serves.
func (c *Command) open(
	ctx context.Context, contract *contract.Document, version Version, log *serveLog,
) error {
	// The addresses come first: where one is taken, nothing is made on disk.
	at, err := c.listen(ctx)
	if err != nil {
		return err
	}
	defer at.close()
	if at.security, err = newTLSConfig(c.TLSCert, c.TLSKey, log.Logger); err != nil {
		return err
	}
	database, err := createStore(ctx, c.DatabaseFlags, log)
	if err != nil {
		return err
	}
	err = letIn(ctx, database, contract.OperationIDs(), c.Database.Folder(), at.url(), log)
	if err == nil {
		err = c.serve(ctx, server.Config{
			Contract: contract, Store: database, Version: string(version), Logger: log.Logger, FailedAttempts: c.FailedAttempts,
			RateLimit: server.RateLimit(c.RateLimit),
		}, at, version, log)
	}
	return errors.Join(err, database.Close())
}

// listen takes the addresses.
func (c *Command) listen(ctx context.Context) (at endpoint, err error) {
	if at.Listener, err = listenOn(ctx, c.Listen, "--listen"); err != nil {
		return at, err
	}
	if c.OpsListen == "" {
		return at, nil
	}
	if at.ops, err = listenOn(ctx, c.OpsListen, "--ops-listen"); err != nil {
		at.close()
	}
	return at, err
}

// listenOn takes an address that a flag names.
func listenOn(ctx context.Context, address flags.ListenAddress, flag string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", string(address))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is in use; stop the other program, or name another address with %s",
			address, flag)
	}
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: %s is no address of this machine; name one that is, or 0.0.0.0 for all", flag, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: ports under 1024 need a privilege; name another one, or give the program "+
			"CAP_NET_BIND_SERVICE", flag)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return listener, nil
}

func (c *Command) serve(
	ctx context.Context, config server.Config, at endpoint, version Version, log *serveLog,
) error {
	var registry *prometheus.Registry
	if at.ops != nil {
		registry = newRegistry(log)
		config.Metrics = server.NewMetrics(registry, config.Contract, config.Store)
	}
	traces, flushTraces := tracing.Start(ctx, log.Logger, log.say, string(version))
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
	manager := serviceManager{log.Logger}
	ctx, stop := drainAfter(ctx, c.DrainDelay, api, manager)
	defer stop()
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	go manager.watch(watching)
	manager.tellReady(at.url())
	go announce(at.url(), log)
	limits := listener.DefaultLimits()
	limits.Connections = c.MaxConnections
	if err := listener.Serve(ctx, at, api, limits, at.security, log.Logger); err != nil {
		return err
	}
	log.Info("no request is left; the server stops")
	return nil
}

// announce tells whoever waits for it that the server is ready. Where nobody reads it, the server goes on.
func announce(baseURL string, log *serveLog) {
	if err := console.NewOutput(os.Stdout).LineNow("listening on " + baseURL); err != nil {
		log.Warn("address was not announced", slog.String("error", err.Error()))
	}
}
