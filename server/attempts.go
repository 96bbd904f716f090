package server

import (
	"net/netip"
	"time"
)

// failedAttempts counts the wrong tokens that come from each address.
type failedAttempts struct{ limiters *limiters }

func newFailedAttempts(perMinute int) failedAttempts {
	return failedAttempts{newLimiters(RateLimit{Requests: perMinute, Window: time.Minute})}
}

// add counts an attempt and returns how long the address has to wait before the next; 0 while it may go on.
func (f failedAttempts) add(address string, at time.Time) time.Duration {
	return f.limiters.take(networkOf(address), at)
}

// networkOf is an IPv4 address as it stands, and the network of 64 bits of an IPv6 address, which one host has alone.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	const hostBits = 64
	network, err := ip.WithZone("").Prefix(hostBits)
	if err != nil {
		return address
	}
	return network.String()
}
