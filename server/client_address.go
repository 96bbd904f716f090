package server

import (
	"iter"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwardedHeader is the header of RFC 7239.
const forwardedHeader = "Forwarded"

// Proxies are the peers that report the addresses of their clients. The zero value trusts none.
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
		if strings.TrimSpace(element) == "" {
			continue
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
			for isMore := true; isMore; {
				var element string
				line, element, isMore = cutLast(line, ',')
				if !yield(element) {
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
	if host, _, err := net.SplitHostPort(node); err == nil {
		node = host
	} else if strings.HasPrefix(node, "[") && strings.HasSuffix(node, "]") {
		node = node[1 : len(node)-1]
	}
	address, err := netip.ParseAddr(node)
	return address.Unmap().WithZone(""), err == nil
}

// forwardedNode returns the node that an element of Forwarded names with its parameter for; "" if there is none.
func forwardedNode(element string) string {
	for isMore := true; isMore; {
		var parameter string
		element, parameter, isMore = cutLast(element, ';')
		if name, value, _ := strings.Cut(strings.TrimSpace(parameter), "="); strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// cutLast cuts a list around the last separator outside a quoted string. It reads from the right, so that a quote that
// a client left open cannot hide what a proxy appended.
func cutLast(list string, separator byte) (before, last string, found bool) {
	isQuoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && (i-len(strings.TrimRight(list[:i], `\`)))%2 == 0:
			isQuoted = !isQuoted
		case list[i] == separator && !isQuoted:
			return list[:i], list[i+1:], true
		}
	}
	return "", list, false
}
