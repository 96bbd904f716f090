package server

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"
)

// The header fields of draft-ietf-httpapi-ratelimit-headers-10, and the name of the only policy.
const (
	rateLimitHeader       = "RateLimit"
	rateLimitPolicyHeader = "RateLimit-Policy"
	rateLimitPolicy       = "caller"
)

// maxLimiters is how many keys are counted at a time.
const maxLimiters = 10_000

// RateLimit allows a number of requests per window. They may come at once; further ones are allowed at an even rate.
// The zero value means no limit.
type RateLimit struct {
	Requests int
	// Window is a number of whole seconds.
	Window time.Duration
}

// limiters applies one limit to each key.
type limiters struct {
	limit RateLimit
	mutex sync.Mutex
	byKey map[string]*rate.Limiter
}

func newLimiters(limit RateLimit) *limiters {
	return &limiters{limit: limit, byKey: map[string]*rate.Limiter{}}
}

// quota is what is left of the limit of a key.
type quota struct {
	// wait is how long to wait if the key exceeded its limit; 0 if it did not.
	wait time.Duration
	// remaining requests are allowed at once, and one more after next.
	remaining int
	next      time.Duration
}

// take counts a request of a key, unless the key exceeds its limit.
func (l *limiters) take(key string) quota {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	// A limiter that gets times out of order grants the time between them twice.
	at := time.Now()
	limiter, ok := l.byKey[key]
	perSecond := float64(l.limit.Requests) / l.limit.Window.Seconds()
	if !ok {
		l.makeRoom(at)
		limiter = rate.NewLimiter(rate.Limit(perSecond), l.limit.Requests)
		l.byKey[key] = limiter
	}
	reservation := limiter.ReserveN(at, 1)
	if wait := reservation.DelayFrom(at); wait > 0 {
		reservation.CancelAt(at)
		return quota{wait: wait, next: wait}
	}
	// At the very end of a wait, it can be slightly negative.
	remaining := max(0, limiter.TokensAt(at))
	whole := math.Floor(remaining)
	next := time.Duration((whole + 1 - remaining) / perSecond * float64(time.Second))
	return quota{remaining: int(whole), next: next}
}

// makeRoom removes keys that have not used any of their limit, or all keys, before there are too many.
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

// networkOf returns an IPv4 address unchanged, and the /64 network of an IPv6 address, because one host has all of
// that.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	const hostBits = 64
	return netip.PrefixFrom(ip.WithZone(""), hostBits).Masked().String()
}

// wholeSeconds formats a wait for a header, rounded up. A wait can be too short for a time.Duration.
func wholeSeconds(wait time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds()))))
}

// limitRate refuses requests of a caller that exceeds its rate, which counts refused requests too, and reports to every
// caller how many it has left. Callers are distinguished by the names of their tokens. There is no limit if callers is
// nil.
func limitRate(callers *limiters) echo.MiddlewareFunc {
	if callers == nil {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}
	limit := callers.limit
	seconds := int(limit.Window.Seconds())
	policy := fmt.Sprintf("%q;q=%d;w=%d", rateLimitPolicy, limit.Requests, seconds)
	detail := fmt.Sprintf("Tokens of one name may send %d requests per %d s. Wait as many seconds as Retry-After says.",
		limit.Requests, seconds)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			left := callers.take(exchangeOf(c.Request().Context()).token.Name)
			header := c.Response().Header()
			header.Set(rateLimitHeader, fmt.Sprintf("%q;r=%d;t=%s", rateLimitPolicy, left.remaining, wholeSeconds(left.next)))
			header.Set(rateLimitPolicyHeader, policy)
			if left.wait == 0 {
				return next(c)
			}
			return &refusal{
				slug: tooManyRequests, detail: detail, isLimited: true,
				header: map[string]string{retryAfterHeader: wholeSeconds(left.wait)},
			}
		}
	}
}
