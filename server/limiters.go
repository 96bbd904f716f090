package server

import (
	"math"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimiters bounds the memory for those who are counted.
const maxLimiters = 10_000

// RateLimit is how many requests may come in a time. As many may come at once; then one more may come each time that
// this part of the time has passed. The zero value stands for no limit.
type RateLimit struct {
	Requests int
	// Window is whole seconds.
	Window time.Duration
}

// limiters count what comes under each key against one limit.
type limiters struct {
	limit RateLimit
	mutex sync.Mutex
	byKey map[string]*rate.Limiter
}

func newLimiters(limit RateLimit) *limiters {
	return &limiters{limit: limit, byKey: map[string]*rate.Limiter{}}
}

// take counts what comes under a key, unless it returns how long to wait before it may come.
func (l *limiters) take(key string, at time.Time) (wait time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	limiter, ok := l.byKey[key]
	if !ok {
		l.makeRoom(at)
		perSecond := float64(l.limit.Requests) / l.limit.Window.Seconds()
		limiter = rate.NewLimiter(rate.Limit(perSecond), l.limit.Requests)
		l.byKey[key] = limiter
	}
	reservation := limiter.ReserveN(at, 1)
	if wait = reservation.DelayFrom(at); wait > 0 {
		reservation.CancelAt(at)
	}
	return wait
}

// makeRoom forgets keys that are as good as new, or all of them, before there are too many.
func (l *limiters) makeRoom(at time.Time) {
	if len(l.byKey) < maxLimiters {
		return
	}
	for key, limiter := range l.byKey {
		if limiter.TokensAt(at) >= float64(l.limit.Requests) {
			delete(l.byKey, key)
		}
	}
	if len(l.byKey) >= maxLimiters {
		clear(l.byKey)
	}
}

// networkOf is an IPv4 address as it stands, and the network of 64 bits of an IPv6 address, which one host has alone.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	const hostBits = 64
	return netip.PrefixFrom(ip.WithZone(""), hostBits).Masked().String()
}

// wholeSeconds is a wait as headers tell it, rounded up.
func wholeSeconds(wait time.Duration) string { return strconv.Itoa(int(math.Ceil(wait.Seconds()))) }
