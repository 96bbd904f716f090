package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxAddresses bounds the memory for those who show wrong tokens.
const maxAddresses = 10_000

// failedAttempts counts the wrong tokens that come from each address.
type failedAttempts struct {
	perMinute int
	mutex     sync.Mutex
	limiters  map[string]*rate.Limiter
}

func newFailedAttempts(perMinute int) *failedAttempts {
	return &failedAttempts{perMinute: perMinute, limiters: map[string]*rate.Limiter{}}
}

// add counts an attempt and returns how long the address has to wait before the next; 0 while it may go on.
func (f *failedAttempts) add(address string, at time.Time) time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	network := networkOf(address)
	limiter, ok := f.limiters[network]
	if !ok {
		f.makeRoom(at)
		limiter = rate.NewLimiter(rate.Limit(f.perMinute)/rate.Limit(time.Minute.Seconds()), f.perMinute)
		f.limiters[network] = limiter
	}
	reservation := limiter.ReserveN(at, 1)
	wait := reservation.DelayFrom(at)
	if wait > 0 {
		reservation.CancelAt(at)
	}
	return wait
}

// makeRoom forgets addresses that are as good as new, or all of them, before there are too many.
func (f *failedAttempts) makeRoom(at time.Time) {
	if len(f.limiters) < maxAddresses {
		return
	}
	for network, limiter := range f.limiters {
		if limiter.TokensAt(at) >= float64(f.perMinute) {
			delete(f.limiters, network)
		}
	}
	if len(f.limiters) >= maxAddresses {
		clear(f.limiters)
	}
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
