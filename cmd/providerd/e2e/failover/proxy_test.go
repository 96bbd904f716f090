//go:build proof

package failover_test

import (
	"net"
	"sync"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// proxy is the network between the replicas and a PostgreSQL server. It keeps its address when the server is replaced.
type proxy struct {
	listener net.Listener
	// passing is read-locked while data passes, and write-locked to stall the network.
	passing sync.RWMutex
	mutex   sync.Mutex
	// target is empty if the network is cut.
	target string
	open   map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	processtest.Must(t, err)
	p := &proxy{listener: listener, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		p.redirect("")
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.join(client)
		}
	}()
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// redirect closes the connections and makes new ones go to target, or closes them if it is empty.
func (p *proxy) redirect(target string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for conn := range p.open {
		_ = conn.Close()
	}
	clear(p.open)
	p.target = target
}

// join connects a client to the server.
func (p *proxy) join(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := p.dial(client)
	if err != nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { p.copy(server, client) })
	group.Go(func() { p.copy(client, server) })
	group.Wait()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// dial connects to the server and registers both connections.
func (p *proxy) dial(client net.Conn) (net.Conn, error) {
	p.passing.RLock()
	defer p.passing.RUnlock()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return nil, err
	}
	p.open[client], p.open[server] = true, true
	return server, nil
}

// copy forwards data until either connection is closed.
func (p *proxy) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	for buffer := make([]byte, 32<<10); ; {
		count, err := from.Read(buffer)
		p.passing.RLock()
		_, writeErr := to.Write(buffer[:count])
		p.passing.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}
