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
	ctx context.Context, delay time.Duration, api *server.Server, logger *slog.Logger,
) (context.Context, context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		api.BeginDrain()
		logger.Info("shutting down", slog.Duration("drain_delay", delay),
			slog.Int64("drain_delay_ms", delay.Milliseconds()))
		// The service manager would otherwise kill the server if it knows a shorter time.
		longest := delay + listener.DefaultLimits().DrainTimeout + maxCleanup
		notifyManager(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: not ready, still serving requests",
			daemon.SdNotifyStopping, longest.Microseconds()))
		time.AfterFunc(delay, func() {
			notifyManager("STATUS=finishing requests in flight")
			cancel()
		})
	})
	return drained, cancel
}

// notifyManager notifies the service manager at NOTIFY_SOCKET, such as systemd, as in sd_notify(3). Without one,
// nothing happens. One that hears nothing reports that itself.
func notifyManager(state string) { _, _ = daemon.SdNotify(false, state) }

// pingWatchdog pings the service manager's watchdog, twice as often as required, as long as the process runs. A ping
// proves only that the process is scheduled. It deliberately ignores the database and the disk: a restart would repair
// neither, and would abort the requests waiting for them. /readyz reports their state.
func pingWatchdog() {
	// An error means that the service manager has set no valid interval.
	interval, _ := daemon.SdWatchdogEnabled(false)
	if interval <= 0 {
		return
	}
	for range time.Tick(max(interval/2, time.Millisecond)) {
		notifyManager(daemon.SdNotifyWatchdog)
	}
}
