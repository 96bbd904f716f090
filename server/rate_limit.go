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

// The header fields of draft-ietf-httpapi-ratelimit-headers-10, and what they call the one policy there is.
const (
	rateLimitHeader       = "RateLimit"
	rateLimitPolicyHeader = "RateLimit-Policy"
	rateLimitPolicy       = "caller"
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

// wholeSeconds is a wait as headers have it, rounded up.
func wholeSeconds(wait time.Duration) string { return strconv.Itoa(int(math.Ceil(wait.Seconds()))) }

// limitRate asks a caller to wait who sends more than it may, whatever becomes of its requests. Callers are told apart
// by the names of their tokens; they have no limit if the limiters are nil.
func limitRate(callers *limiters) echo.MiddlewareFunc {
	if callers == nil {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}
	limit := callers.limit
	seconds := int(limit.Window.Seconds())
	policy := fmt.Sprintf("%q;q=%d;w=%d", rateLimitPolicy, limit.Requests, seconds)
	detail := fmt.Sprintf("The tokens of one name may send %d requests per %d s. Wait the seconds that Retry-After names.",
		limit.Requests, seconds)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			wait := callers.take(exchangeOf(c.Request().Context()).token.Name, time.Now())
			if wait == 0 {
				return next(c)
			}
			return &refusal{
				slug: tooManyRequests, detail: detail, isLimited: true, header: map[string]string{
					retryAfterHeader:      wholeSeconds(wait),
					rateLimitHeader:       fmt.Sprintf("%q;r=0;t=%s", rateLimitPolicy, wholeSeconds(wait)),
					rateLimitPolicyHeader: policy,
				},
			}
		}
	}
}
