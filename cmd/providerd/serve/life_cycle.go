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

// maxDrainDelay is longer than any load balancer takes to see that a server is not ready.
const maxDrainDelay = 10 * time.Minute

// maxEnd is for what remains once no request is left: the database is closed, and traces and log get their last.
const maxEnd = 30 * time.Second

// drainAfter returns a context that ends a while after ctx does. Meanwhile the server is not ready, but goes on to
// serve, so that load balancers stop sending requests before the address closes.
func drainAfter(
	ctx context.Context, delay time.Duration, api *server.Server, manager serviceManager,
) (context.Context, context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		api.BeginDrain()
		manager.logger.Info("told to stop; not ready any more", slog.Duration("drain_delay", delay))
		manager.tellStopping(delay + listener.DefaultLimits().DrainTimeout + maxEnd)
		time.AfterFunc(delay, func() {
			manager.tell("STATUS=ending the requests that have begun")
			cancel()
		})
	})
	return drained, cancel
}

// serviceManager is told of the life of the server (sd_notify(3)), where NOTIFY_SOCKET names one, such as systemd.
type serviceManager struct{ logger *slog.Logger }

func (m serviceManager) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.logger.Warn("the service manager was not told", slog.String("error", err.Error()))
	}
}

func (m serviceManager) tellReady(baseURL string) {
	m.tell(daemon.SdNotifyReady + "\nSTATUS=serving on " + baseURL)
}

// tellStopping asks for as much time as the server may need, where the service manager would kill it sooner.
func (m serviceManager) tellStopping(longest time.Duration) {
	m.tell(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: not ready, but still answering new requests",
		daemon.SdNotifyStopping, longest.Microseconds()))
}

// watch tells the service manager that the process is alive, twice as often as it asks for, until ctx ends. It proves
// that the process is given a processor and runs, and nothing else, on purpose: whatever a request needs may wait for
// the database, or for a disk. A restart would bring neither back, but end the requests that wait for it; /readyz tells
// of them.
func (m serviceManager) watch(ctx context.Context) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.logger.Warn("the watchdog of the service manager is not used", slog.String("error", err.Error()))
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
			m.tell(daemon.SdNotifyWatchdog)
		}
	}
}
