package server

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// The headers that proxies add: that of RFC 7239, and the older one.
const (
	forwardedHeader     = "Forwarded"
	forwardedForHeader  = "X-Forwarded-For"
	forwardedForElement = "for="
)

// Proxies are the peers that tell the addresses of their clients. The zero value trusts none.
type Proxies struct {
	// Networks are those of the trusted peers.
	Networks []netip.Prefix
	// Header is the only header that is read: Forwarded (RFC 7239) or X-Forwarded-For.
	Header string
}

// clientAddress returns the IP address of the client: the rightmost hop of the header that is not trusted or, if the
// peer is not trusted, the peer, because anyone can send headers. If the hop before a trusted one is
// malformed, it is that trusted one; if all are trusted, it is the leftmost one.
func (p Proxies) clientAddress(r *http.Request) (address string, isMalformed bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr, false
	}
	client := peer.Addr()
	for element := range lastElements(r.Header.Values(p.Header)) {
		if !p.trusts(client) {
			break
		}
		hop, ok := p.hop(element)
		if !ok {
			return client.String(), true
		}
		client = hop
	}
	return client.String(), false
}

// lastElements returns the elements of the lines of a header, the last one first.
func lastElements(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(lines) {
			for comma := len(line); comma >= 0; {
				line = line[:comma]
				comma = strings.LastIndexByte(line, ',')
				if !yield(line[comma+1:]) {
					return
				}
			}
		}
	}
}

func (p Proxies) trusts(address netip.Addr) bool {
	contains := func(network netip.Prefix) bool { return network.Contains(address.Unmap().WithZone("")) }
	return slices.ContainsFunc(p.Networks, contains)
}

// hop parses one element of the header.
func (p Proxies) hop(element string) (netip.Addr, bool) {
	node := strings.TrimSpace(element)
	if p.Header == forwardedHeader {
		node = forwardedNode(node)
	}
	if at, err := netip.ParseAddrPort(node); err == nil {
		return at.Addr().WithZone(""), true
	}
	if inner, ok := strings.CutPrefix(node, "["); ok {
		node = strings.TrimSuffix(inner, "]")
	}
	address, err := netip.ParseAddr(node)
	return address.WithZone(""), err == nil
}

// forwardedNode returns the node that an element of Forwarded names with its parameter for; "" if there is none.
func forwardedNode(element string) string {
	for parameter := range strings.SplitSeq(element, ";") {
		parameter = strings.TrimSpace(parameter)
		if len(parameter) >= len(forwardedForElement) &&
			strings.EqualFold(parameter[:len(forwardedForElement)], forwardedForElement) {
			return strings.Trim(parameter[len(forwardedForElement):], `"`)
		}
	}
	return ""
}
