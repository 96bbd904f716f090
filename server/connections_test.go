package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/server"
	"example.com/providerd/server/listener"
	"example.com/providerd/store/storetest/processtest"
)

type peer struct {
	*net.TCPConn
	answers *bufio.Reader
}

const (
	healthRequest = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	peerTimeout   = 3 * time.Minute
)

func connect(t *testing.T, address string) *peer {
	t.Helper()
	connection := processtest.Try(net.Dial("tcp", address)).Must(t)
	t.Cleanup(func() { _ = connection.Close() })
	processtest.Must(t, connection.SetDeadline(time.Now().Add(peerTimeout)))
	return &peer{TCPConn: connection.(*net.TCPConn), answers: bufio.NewReader(connection)}
}

func (p *peer) send(t *testing.T, text string) *peer {
	t.Helper()
	processtest.Try(io.WriteString(p, text)).Must(t)
	return p
}

func (p *peer) want(t *testing.T, status int) *http.Response {
	t.Helper()
	response := p.answer(t)
	processtest.Require(t, response.StatusCode == status, "status is %d, want %d", response.StatusCode, status)
	return response
}

func (p *peer) answer(t *testing.T) *http.Response {
	t.Helper()
	response := processtest.Try(http.ReadResponse(p.answers, nil)).Must(t)
	body := processtest.Try(io.ReadAll(response.Body)).Must(t)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response
}

func (p *peer) wantClosed(t *testing.T, who string) {
	t.Helper()
	_, err := p.answers.ReadByte()
	processtest.Expect(t, err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "%s is not closed: %v", who, err)
}

// begin sends a create without its body, so that the server waits for the rest.
func (h *harness) begin(t *testing.T, address, body string) *peer {
	t.Helper()
	caller := connect(t, address)
	caller.send(t, h.head()+fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body)))
	caller.want(t, http.StatusContinue)
	return caller
}

func TestNewConnectionReplacesIdleOne(t *testing.T) {
	h := startParallel(t)
	limits := listener.DefaultLimits()
	limits.Connections, limits.TransferGrace = 3, time.Hour
	address := h.listen(t, limits)
	body := encode(t, minimal(oauth2Path))

	silent := connect(t, address)
	kept := connect(t, address).send(t, healthRequest)
	kept.want(t, http.StatusOK)
	first := h.begin(t, address, body)
	// All connections are in use. The one that has been idle longest is closed first.
	second := h.begin(t, address, body)
	silent.wantClosed(t, "a connection that has sent nothing")
	third := h.begin(t, address, body)
	kept.wantClosed(t, "a connection that is kept for the next request")
	// All requests are being handled: a newcomer waits for the first to finish.
	newcomer := connect(t, address).send(t, healthRequest)
	first.send(t, body).want(t, http.StatusCreated)
	first.wantClosed(t, "the connection of an answered request")
	newcomer.want(t, http.StatusOK)
	for _, begun := range []*peer{second, third} {
		begun.send(t, body).want(t, http.StatusCreated)
	}
}

// TestNewConnectionReplacesStalledOne uses all connections for incomplete requests, without and with a valid token.
func TestNewConnectionReplacesStalledOne(t *testing.T) {
	h := startParallel(t)
	anonymous := listener.DefaultLimits()
	anonymous.Connections = 2
	authenticated := anonymous
	authenticated.TransferGrace = 10 * time.Millisecond
	large := directoryWith(`{"key":"` + strings.Repeat("x", 1_000_000) + `"}`)
	const smallest, untilStuck = 4 << 10, 3 * time.Second
	for name, request := range map[string]string{
		"header that does not end":              "GET /healthz HTTP/1.1\r\n",
		"body that does not come":               "POST " + oauth2Path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"answers that are not read":             strings.Repeat("GET /docs/scalar.js HTTP/1.1\r\nHost: x\r\n\r\n", 20),
		"body that does not come, with a token": h.head() + "Content-Length: 100\r\n\r\n",
		"answers that are not read, with a token": strings.Repeat(h.directoryHead()+
			fmt.Sprintf("Idempotency-Key: large\r\nContent-Length: %d\r\n\r\n%s", len(large), large), 8),
	} {
		limits, callers, within := anonymous, 4, 8*time.Second
		if strings.Contains(request, h.token) {
			limits, callers, within = authenticated, 2, 10*time.Second
		}
		address := h.listen(t, limits)
		var group sync.WaitGroup
		for range callers {
			caller := connect(t, address)
			processtest.Must(t, caller.SetReadBuffer(smallest), caller.SetWriteDeadline(time.Now().Add(untilStuck)))
			group.Go(func() {
				_, err := io.WriteString(caller, request)
				processtest.Expect(t, err == nil || errors.Is(err, os.ErrDeadlineExceeded), "%s: %v", name, err)
			})
		}
		group.Wait()
		begun := time.Now()
		connect(t, address).send(t, healthRequest).want(t, http.StatusOK)
		took := time.Since(begun)
		processtest.Expect(t, took <= within, "%s: a newcomer waits for %v", name, took)
	}
}

// TestCutOffCreatesStoreNothing closes connections while creates arrive on them. Without a response, nothing is stored.
func TestCutOffCreatesStoreNothing(t *testing.T) {
	h := startParallel(t)
	limits := listener.DefaultLimits()
	limits.Connections, limits.Grace = 1, time.Nanosecond
	address := h.listen(t, limits)
	body := encode(t, minimal(oauth2Path))
	request := h.head() + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	const rounds = 500
	created := 0
	for range rounds {
		caller := connect(t, address).send(t, request)
		newcomer := connect(t, address)
		if response, err := http.ReadResponse(caller.answers, nil); err == nil {
			processtest.Equal(t, response.StatusCode, http.StatusCreated, "status")
			created++
		}
		processtest.Must(t, caller.Close(), newcomer.Close())
	}
	if stored := h.count(t); stored != created || created == rounds {
		t.Errorf("%d creates are stored, %d of %d were acknowledged", stored, created, rounds)
	}
}

// TestMoreCallersThanConnections has each caller send one request after the other over a connection that it keeps open. Callers
// get places only because responses close connections. No request is cut off.
func TestMoreCallersThanConnections(t *testing.T) {
	h := startParallel(t)
	limits := listener.DefaultLimits()
	limits.Connections, limits.Grace = 4, 2*peerTimeout
	address := h.listen(t, limits)
	var group sync.WaitGroup
	for range 3 * limits.Connections {
		group.Go(func() {
			caller := connect(t, address)
			for range 50 {
				if caller.send(t, healthRequest).want(t, http.StatusOK).Close {
					_ = caller.Close()
					caller = connect(t, address)
				}
			}
			_ = caller.Close()
		})
	}
	group.Wait()
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	h := startParallel(t)
	limits := listener.DefaultLimits()
	processtest.Expect(t, limits.IdleTimeout == 30*time.Second && limits.ProxyIdleTimeout >= 620*time.Second,
		"idle connections are closed after %v, of proxies %v", limits.IdleTimeout, limits.ProxyIdleTimeout)
	limits.IdleTimeout = 100 * time.Millisecond
	address := h.listen(t, limits)
	limits.HeaderTimeout, limits.IsProxy = 200*time.Millisecond, server.Proxies{netip.MustParsePrefix("127.0.0.0/8")}.Include
	ofProxy := connect(t, h.listen(t, limits)).send(t, healthRequest)
	ofProxy.want(t, http.StatusOK)
	// The two were idle one after the other.
	idle := connect(t, address).send(t, healthRequest)
	idle.want(t, http.StatusOK)
	idle.wantClosed(t, "an idle connection")
	ofProxy.send(t, healthRequest).want(t, http.StatusOK)
	ofProxy.send(t, "GET / HTTP/1.1\r\n").wantClosed(t, "a connection of a proxy with a header that does not end")
}

func TestConnectionsOfProxiesAreReplaced(t *testing.T) {
	t.Parallel()
	limits := listener.DefaultLimits()
	limits.Connections, limits.IsProxy = 1, server.Proxies{netip.MustParsePrefix("127.0.0.0/8")}.Include
	address := start(t).listen(t, limits)
	idle := connect(t, address).send(t, healthRequest)
	idle.want(t, http.StatusOK)
	connect(t, address).send(t, healthRequest).want(t, http.StatusOK)
	idle.wantClosed(t, "the connection that has been idle longest")
}
