//go:build slow

package postgres_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest/processtest"
)

// A program refuses a standby, but finds the primary behind one in the URL. It waits for a primary that is slow to respond
// or to continue, even if the URL also names a standby.
func TestBusyPrimary(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	if err := openError(t, r.standby.URL(databaseOf(t, r.url))); !errors.Is(err, database.ErrUnavailable) {
		t.Errorf("standby: error is %v, want ErrUnavailable", err)
	}
	if err := openError(t, strings.Replace(r.url, r.primary.Address(), r.standby.Address()+","+r.primary.Address(), 1)); err != nil {
		t.Errorf("standby, then primary: %v", err)
	}
	for name, delays := range map[string][]time.Duration{
		"silent at first":  {1500 * time.Millisecond},
		"slow to continue": {0, 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			location, err := url.Parse(r.url)
			processtest.Must(t, err)
			location.Host = slowLink(t, location.Host, delays) + "," + r.standby.Address()
			if err := openError(t, location.String()); err != nil {
				t.Error(err)
			}
		})
	}
}

// slowLink returns the address of a proxy for a server. It delays the first parts that the server sends on a
// connection, each by one of the delays.
func slowLink(t *testing.T, server string, delays []time.Duration) string {
	t.Helper()
	return answering(t, func(caller net.Conn) { link(caller, server, delays) })
}

// answering returns the address of a server that calls answer for each connection, and then closes it.
func answering(t *testing.T, answer func(caller net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	processtest.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = caller.Close() }()
				answer(caller)
			}()
		}
	}()
	return listener.Addr().String()
}

func link(caller net.Conn, server string, delays []time.Duration) {
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.Copy(conn, caller) }()
	part := make([]byte, 4096)
	for _, delay := range delays {
		count, err := conn.Read(part)
		if err != nil {
			return
		}
		<-time.After(delay)
		if _, err := caller.Write(part[:count]); err != nil {
			return
		}
	}
	_, _ = io.Copy(caller, conn)
}
