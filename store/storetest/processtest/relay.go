package processtest

import (
	"io"
	"net"
	"testing"
	"time"
)

// Answering returns the address of a server that calls answer for each connection, and then closes it.
func Answering(t testing.TB, answer func(caller net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
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

// Relay connects a caller to a server. It delays the first parts that the server sends, each by one of the delays.
func Relay(caller net.Conn, server string, delays ...time.Duration) {
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
