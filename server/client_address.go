package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// Proxies are the networks of the peers that report the addresses of their clients.
type Proxies []netip.Prefix

// clientAddress returns the IP address of the client: the rightmost hop of X-Forwarded-For that is not trusted or, if
// the peer is not trusted, the peer, because anyone can send headers. If the hop before a trusted one is malformed, it
// is that trusted one; if all are trusted, it is the leftmost one. (Echo's extractor gives up at a hop with a port.)
func (p Proxies) clientAddress(r *http.Request) (address string, isMalformed bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr, false
	}
	client, hops := peer.Addr(), strings.Join(r.Header.Values(echo.HeaderXForwardedFor), ",")
	for hops != "" && p.trusts(client) {
		last := strings.LastIndexByte(hops, ',')
		element := strings.TrimSpace(hops[last+1:])
		hops = hops[:max(last, 0)]
		if element == "" {
			continue
		}
		hop, err := parseHop(element)
		if err != nil {
			return client.String(), true
		}
		client = hop
	}
	return client.String(), false
}

// Include reports whether a peer is one of the proxies.
func (p Proxies) Include(peer net.Addr) bool {
	address, err := netip.ParseAddrPort(peer.String())
	return err == nil && p.trusts(address.Addr())
}

func (p Proxies) trusts(address netip.Addr) bool {
	contains := func(network netip.Prefix) bool { return network.Contains(address.Unmap().WithZone("")) }
	return slices.ContainsFunc(p, contains)
}

// parseHop parses an address, which may have a port or brackets.
func parseHop(element string) (netip.Addr, error) {
	if host, _, err := net.SplitHostPort(element); err == nil {
		element = host
	} else if strings.HasPrefix(element, "[") && strings.HasSuffix(element, "]") {
		element = element[1 : len(element)-1]
	}
	address, err := netip.ParseAddr(element)
	return address.Unmap().WithZone(""), err
}
