package server

import (
	"fmt"
	"time"

	"github.com/labstack/echo/v4"
)

// The header fields of draft-ietf-httpapi-ratelimit-headers-10, and what they call the one policy there is.
const (
	rateLimitHeader       = "RateLimit"
	rateLimitPolicyHeader = "RateLimit-Policy"
	rateLimitPolicy       = "caller"
)

// limitRate asks a caller to wait who sends more than it may, whatever becomes of its requests. Callers are told apart
// by the names of their tokens.
func (s *Server) limitRate(next echo.HandlerFunc) echo.HandlerFunc {
	if s.callers == nil {
		return next
	}
	limit := s.callers.limit
	seconds := int(limit.Window.Seconds())
	policy := fmt.Sprintf("%q;q=%d;w=%d", rateLimitPolicy, limit.Requests, seconds)
	detail := fmt.Sprintf("The tokens of one name may send %d requests per %d s. Wait the seconds that Retry-After names.",
		limit.Requests, seconds)
	return func(c echo.Context) error {
		wait := s.callers.take(exchangeOf(c.Request().Context()).token.Name, time.Now())
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
