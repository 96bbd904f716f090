package console

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// UntilInterrupted returns a context that the first SIGINT or SIGTERM cancels.
func UntilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
