package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// timeout is how long any operation may take on a busy machine.
const timeout = 2 * time.Minute

// waiting returns a context that ends after timeout, not with the test, so that cleanups can wait.
func waiting(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
}

// check fails the test if there is an error.
func check(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// await calls ready every 10 ms until it returns nil, ended is closed, or the context ends.
func await(ctx context.Context, ended <-chan struct{}, ready func() error) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ended:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w; last error: %w", ctx.Err(), err)
		}
	}
}

// onFreePort calls start with random ports until one is free. The ports are below the range that Linux uses for
// outgoing connections (ip_local_port_range), in which a client that keeps dialing a dead server could get that
// server's port and connect to itself.
func onFreePort(start func(port int) error) error {
	const first, end, tries = 20000, 32768, 10
	var err error
	for range tries {
		if err = start(first + rand.IntN(end-first)); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}
