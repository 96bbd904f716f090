package serve

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"example.com/providerd/server"
	"example.com/providerd/server/listener"
)

// maxDrainDelay is longer than any load balancer takes to notice that a server is not ready.
const maxDrainDelay = 10 * time.Minute

// maxCleanup bounds what remains after the last request: closing the database, and flushing traces and the log.
const maxCleanup = 30 * time.Second

// drainAfter returns a context that is canceled delay after ctx. In between, the server serves requests but is not
// ready, so that load balancers stop sending requests before the address closes.
func drainAfter(
	ctx context.Context, delay time.Duration, api *server.Server, manager serviceManager,
) (context.Context, context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		api.BeginDrain()
		manager.logger.Info("shutting down", slog.Duration("drain_delay", delay),
			slog.Int64("drain_delay_ms", delay.Milliseconds()))
		// The service manager would otherwise kill the server if it knows a shorter time.
		longest := delay + listener.DefaultLimits().DrainTimeout + maxCleanup
		manager.notify(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: not ready, still serving requests",
			daemon.SdNotifyStopping, longest.Microseconds()))
		time.AfterFunc(delay, func() {
			manager.notify("STATUS=finishing requests in flight")
			cancel()
		})
	})
	return drained, cancel
}

// serviceManager is the service manager at NOTIFY_SOCKET, such as systemd. It is notified as in sd_notify(3); without
// one, nothing happens.
type serviceManager struct{ logger *slog.Logger }

func (m serviceManager) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.logger.Warn("cannot notify service manager", slog.String("error", err.Error()))
	}
}

// watch pings the service manager's watchdog, twice as often as required, until ctx is canceled. A ping proves only
// that the process is scheduled. It deliberately ignores the database and the disk: a restart would repair neither, and
// would abort the requests waiting for them. /readyz reports their state.
func (m serviceManager) watch(ctx context.Context) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.logger.Warn("watchdog is disabled", slog.String("error", err.Error()))
	}
	if err != nil || interval <= 0 {
		return
	}
	ticker := time.NewTicker(max(interval/2, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.notify(daemon.SdNotifyWatchdog)
		}
	}
}
