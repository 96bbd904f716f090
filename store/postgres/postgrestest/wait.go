package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// patience is how long anything may take on a machine that does much else.
const patience = 2 * time.Minute

// waiting returns a context that ends when patience does, and not with the test, so that cleanups can wait.
func waiting(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), patience)
}

// check ends a test that an error keeps from going on.
func check(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// await asks every 10 ms until ready returns nil, the program that it waits for has ended, or the context has.
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
			return fmt.Errorf("%w, at last: %w", ctx.Err(), err)
		}
	}
}

// onFreePort calls start with random ports until one is free. They are below those that Linux gives to outgoing
// connections (ip_local_port_range): among those, a client that asks a dead server again and again could get its port,
// and even connect to itself.
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
