//go:build failover

package main

import (
	"net"
	"sync"
	"testing"
)

// proxy is a network between the replicas and a server of PostgreSQL, under an address that stays when the server is
// replaced.
type proxy struct {
	listener net.Listener
	mutex    sync.Mutex
	// changed is told of every change of what follows.
	changed sync.Cond
	target  string
	isCut   bool
	stalled bool
	open    map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, open: map[net.Conn]bool{}}
	p.changed.L = &p.mutex
	t.Cleanup(func() {
		_ = listener.Close()
		p.redirect("")
	})
	go p.accept()
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// redirect leads to another server from now on, over a network that is whole.
func (p *proxy) redirect(target string) { p.set(target, false, false) }

// cut closes the connections, and lets no new ones be.
func (p *proxy) cut() { p.set(p.goal(), true, false) }

// stall keeps the connections, and lets nothing through.
func (p *proxy) stall() { p.set(p.goal(), false, true) }

// pass makes the network whole again. What was held up arrives.
func (p *proxy) pass() { p.set(p.goal(), false, false) }

func (p *proxy) goal() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.target
}

func (p *proxy) set(target string, isCut, stalled bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if isCut || target != p.target {
		for conn := range p.open {
			_ = conn.Close()
		}
		clear(p.open)
	}
	p.target, p.isCut, p.stalled = target, isCut, stalled
	p.changed.Broadcast()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(client)
	}
}

// join connects a client with the server.
func (p *proxy) join(client net.Conn) {
	defer func() { _ = client.Close() }()
	target, ok := p.keep(client)
	if !ok {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if current, ok := p.keep(server); !ok || current != target {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { p.copy(server, client) })
	group.Go(func() { p.copy(client, server) })
	group.Wait()
}

// keep notes a connection, and returns where it leads to, once the network is not stalled.
func (p *proxy) keep(conn net.Conn) (target string, ok bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for p.stalled {
		p.changed.Wait()
	}
	if p.isCut || p.target == "" {
		return "", false
	}
	p.open[conn] = true
	return p.target, true
}

func (p *proxy) copy(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.forget(to, from)
	}()
	for buffer := make([]byte, 32<<10); ; {
		count, err := from.Read(buffer)
		p.awaitPassage()
		if _, writeErr := to.Write(buffer[:count]); err != nil || writeErr != nil {
			return
		}
	}
}

func (p *proxy) awaitPassage() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for p.stalled {
		p.changed.Wait()
	}
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, conn := range conns {
		delete(p.open, conn)
	}
}
