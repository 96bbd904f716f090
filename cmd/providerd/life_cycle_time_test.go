package main

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/server"
)

// told returns all that was told to a service manager so far.
func told(t *testing.T, manager *net.UnixConn) []string {
	t.Helper()
	const last = "no more"
	if _, err := manager.WriteTo([]byte(last), manager.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	var states []string
	for message := make([]byte, 1024); ; {
		length, err := manager.Read(message)
		if err != nil {
			t.Fatal(err)
		}
		if string(message[:length]) == last {
			return states
		}
		states = append(states, string(message[:length]))
	}
}

// TestWatchdogPings counts, in a time of its own, what a service manager hears in three of the intervals that it asks
// for: each ping may then be late by half of one.
func TestWatchdogPings(t *testing.T) {
	manager := listenAsManager(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "30000000")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go serviceManager{slog.New(slog.DiscardHandler)}.watch(ctx)
		<-time.After(91 * time.Second)
		cancel()
	})
	if pings := told(t, manager); !slices.Equal(pings, slices.Repeat([]string{"WATCHDOG=1"}, 6)) {
		t.Errorf("the service manager is told %q", pings)
	}
}

// TestDrainDelay looks, in a time of its own, at how long a server goes on once it is told to stop.
func TestDrainDelay(t *testing.T) {
	manager := listenAsManager(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	for _, delay := range []time.Duration{0, 3 * time.Second, maxDrainDelay} {
		synctest.Test(t, func(t *testing.T) {
			stopped, stop := context.WithCancel(t.Context())
			drained, release := drainAfter(stopped, delay, &server.Server{}, serviceManager{slog.New(slog.DiscardHandler)})
			defer release()
			<-time.After(time.Hour)
			if drained.Err() != nil {
				t.Error("a server ends before it is told to stop")
			}
			stop()
			begun := time.Now()
			<-drained.Done()
			if took := time.Since(begun); took != delay {
				t.Errorf("it goes on for %v, want %v", took, delay)
			}
		})
		if states := told(t, manager); !slices.Equal(states, []string{stateDraining(delay), stateEnding}) {
			t.Errorf("the service manager is told %q", states)
		}
	}
}
