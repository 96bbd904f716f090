package listener_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// watchedListener counts the reads of one byte without a deadline, which return nothing, as those of listener.Conn do.
// reads counts all others.
type watchedListener struct {
	net.Listener
	watches, reads atomic.Int64
}

type watchedConn struct {
	net.Conn
	owner       *watchedListener
	hasDeadline atomic.Bool
}

func (l *watchedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	return &watchedConn{Conn: accepted, owner: l}, err
}

func (c *watchedConn) SetReadDeadline(at time.Time) error {
	c.hasDeadline.Store(!at.IsZero())
	return c.Conn.SetReadDeadline(at)
}

func (c *watchedConn) Read(into []byte) (int, error) {
	if len(into) == 1 && !c.hasDeadline.Load() {
		c.owner.watches.Add(1)
		return 0, nil
	}
	c.owner.reads.Add(1)
	return c.Conn.Read(into)
}

// TestNetHTTPWatchesConnectionsWithOneByte checks what Conn.Read relies on: while a request is handled, net/http reads
// one byte without a deadline, only once, and if that returns nothing, the request and the connection continue. If a
// new version of Go fails this test, change Conn.Read.
func TestNetHTTPWatchesConnectionsWithOneByte(t *testing.T) {
	t.Parallel()
	const requests = 5
	var handled int64
	watched := &watchedListener{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handled++
		reads := watched.reads.Load()
		processtest.WaitUntil(t, "net/http watches the connection", func() bool { return watched.watches.Load() >= handled })
		if watched.reads.Load() != reads || r.Context().Err() != nil {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	watched.Listener, server.Listener = server.Listener, watched
	server.Config.ReadTimeout = processtest.Timeout
	server.Start()
	defer server.Close()
	for range requests {
		response, err := server.Client().Get(server.URL)
		processtest.Must(t, err, response.Body.Close())
		processtest.Equal(t, response.StatusCode, http.StatusOK, "status of a request that was watched")
	}
	processtest.Equal(t, watched.watches.Load(), requests, "times that the connection was watched")
}
