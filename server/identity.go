package server

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"

	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
	"example.com/providerd/store"
	"example.com/providerd/store/token"
)

const (
	challengeHeader = "WWW-Authenticate"
	// challenge begins the value of that header (RFC 6750 section 3).
	challenge   = `Bearer realm="providerd"`
	tokenPrefix = "pvd_"
	askForNew   = "Ask the operator for a new one."
)

const damagedTokenDetail = "The stored entry of the access token is damaged; retrying does not help. Nothing was " +
	"stored. Report this to the operator of the server, or use another token."

const sendBearer = `Send the header "Authorization: Bearer TOKEN" with a valid access token.`

// authenticate identifies the caller by the bearer token (RFC 6750 section 2.1) of the Authorization header only.
func (s *Server) authenticate(c echo.Context) error {
	text, flaw := bearerToken(c.Request().Header)
	if flaw != "" {
		return &refusal{
			slug: unauthorized, detail: flaw + " " + sendBearer,
			header: map[string]string{challengeHeader: challenge}, token: tokenMissing,
		}
	}
	current, begun := exchangeOf(c.Request().Context()), time.Now()
	found, err := s.config.Store.Tokens.Find(c.Request().Context(), text)
	current.waited = time.Since(begun)
	switch {
	case errors.Is(err, token.ErrMistyped):
		return s.invalidToken(c, tokenMistyped, mistypedHint(text), err)
	case errors.Is(err, store.ErrNotFound):
		return s.invalidToken(c, tokenUnknown, askForNew, err)
	case errors.Is(err, store.ErrDamaged):
		return unavailableUntilRepaired(damagedTokenDetail, err)
	case err != nil:
		return fmt.Errorf("authenticate: %w", err)
	}
	current.token = found
	switch state := found.State(time.Now()); state {
	case token.Active:
	case token.Expired:
		until := found.ExpiresAt.UTC().Format(time.RFC3339)
		return s.invalidToken(c, tokenExpired, "It was valid until "+until+". "+askForNew, nil)
	case token.Revoked:
		return s.invalidToken(c, tokenRevoked, askForNew, nil)
	}
	listener.MarkTransferring(c.Request().Context())
	c.Response().Before(func() {
		listener.MarkTransferring(c.Request().Context())
		current.reserved.beginWriting()
	})
	return nil
}

// bearerToken returns the token of the Authorization header, or a sentence about a header without one.
func bearerToken(header http.Header) (token, flaw string) {
	scheme, token, _ := strings.Cut(header.Get(echo.HeaderAuthorization), " ")
	token = strings.Trim(token, " ")
	isBearer := strings.EqualFold(scheme, "bearer")
	switch count := len(header.Values(echo.HeaderAuthorization)); {
	case count == 0:
		return "", "The request has no Authorization header."
	case count > 1:
		return "", "The request has several Authorization headers."
	case isBearer && token != "":
		return token, ""
	case isBearer:
		return "", "The Authorization header has no token after Bearer, as if from an unset variable or a missing file."
	case scheme == "":
		return "", "The Authorization header is empty."
	case strings.TrimLeft(scheme, `"'`) != scheme:
		return "", "The Authorization header is in quotation marks."
	case strings.HasPrefix(strings.ToLower(scheme), "bearer"):
		return "", "The Authorization header has something other than a space after Bearer."
	case token == "":
		return "", "The Authorization header has no scheme before the token."
	default:
		return "", "The Authorization header has a scheme other than Bearer."
	}
}

// What is often sent instead of a token, and a text that has the form of one.
var (
	wordTwice     = regexp.MustCompile(`(?i)^bearer( |$)`)
	jsonOfToken   = regexp.MustCompile(`^\{\s*"`)
	placeholder   = regexp.MustCompile("[$<>%`]|^\\{\\{|^(undefined|null|None|nil|TOKEN)$")
	formedAsToken = regexp.MustCompile(`^pvd_.{40}$`)
	pathOfFile    = regexp.MustCompile(`[/\\]|^[~@]|[.-](txt|token)$`)
)

// mistypedHint returns what to do about a string that is not a token. It reveals only what the string itself shows.
func mistypedHint(text string) string {
	switch {
	case wordTwice.MatchString(text):
		return "The Authorization header has the word Bearer twice; send it once."
	case jsonOfToken.MatchString(text):
		return "It is JSON; send only the value of its member token."
	case placeholder.MatchString(text):
		return "It is a placeholder or a variable that was not expanded; set the variable, and use double quotes in a shell."
	case strings.ContainsAny(text, `"'`):
		return "It is in quotation marks; remove them."
	case formedAsToken.MatchString(text):
		return askForNew
	case pathOfFile.MatchString(text):
		return "It is the path of a file; send what the file contains."
	default:
		return "It is not a whole token, which has 44 characters and begins with pvd_. Copy all of it, and nothing else."
	}
}

// invalidToken refuses a token, or makes an address that sent too many invalid ones wait; valid ones are accepted.
func (s *Server) invalidToken(c echo.Context, reason tokenRefusal, remedy string, cause error) error {
	network := networkOf(exchangeOf(c.Request().Context()).remoteAddress)
	if wait := s.attempts.take(network).wait; wait > 0 {
		return &refusal{
			slug: tooManyRequests, header: map[string]string{retryAfterHeader: wholeSeconds(wait)}, cause: cause,
			token: reason,
		}
	}
	state := reason
	if reason == tokenMistyped {
		// Only the log distinguishes them.
		state = tokenUnknown
	}
	description := fmt.Sprintf("The access token is %s.", state)
	parameters := fmt.Sprintf(`, error="invalid_token", error_description=%q`, description)
	return &refusal{
		slug: unauthorized, detail: description + " " + remedy, cause: cause, token: reason,
		header: map[string]string{challengeHeader: challenge + parameters},
	}
}

// The header fields of draft-ietf-httpapi-ratelimit-headers-10, and the name of the only policy.
const (
	rateLimitHeader       = "RateLimit"
	rateLimitPolicyHeader = "RateLimit-Policy"
	rateLimitPolicy       = "caller"
)

const maxLimiters = 10_000

// RateLimit allows requests per window, simultaneously or at an even rate. The zero value means no limit.
type RateLimit struct {
	Requests int
	// Window is a number of whole seconds.
	Window time.Duration
}

// limiters applies one limit to each key. Half of the keys that are counted are recent ones. When there are more, they
// replace the older ones, so that only keys that have not been used since are forgotten.
type limiters struct {
	limit         RateLimit
	mutex         sync.Mutex
	recent, older map[string]*rate.Limiter
}

func newLimiters(limit RateLimit) *limiters {
	return &limiters{limit: limit, recent: map[string]*rate.Limiter{}}
}

// quota is what is left of the limit of a key.
type quota struct {
	// wait is how long to wait if the key exceeded its limit; 0 if it did not.
	wait time.Duration
	// remaining requests are allowed immediately, and one more after next.
	remaining int
	next      time.Duration
}

// take counts a request of a key, unless the key exceeds its limit.
func (l *limiters) take(key string) quota {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	// A limiter that gets times out of order grants the time between them twice.
	at := time.Now()
	perSecond := float64(l.limit.Requests) / l.limit.Window.Seconds()
	limiter := cmp.Or(l.recent[key], l.older[key])
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Limit(perSecond), l.limit.Requests)
	}
	l.keep(key, limiter)
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

func (l *limiters) keep(key string, limiter *rate.Limiter) {
	if l.recent[key] == nil && len(l.recent) == maxLimiters/2 {
		l.recent, l.older = map[string]*rate.Limiter{}, l.recent
	}
	l.recent[key] = limiter
}

// networkOf returns an IPv4 address, or the /64 network of an IPv6 address, all of which one host has.
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
// caller how many it has left. A caller is a token name. There is no limit if callers is nil.
func limitRate(callers *limiters) echo.HandlerFunc {
	if callers == nil {
		return func(echo.Context) error { return nil }
	}
	limit := callers.limit
	seconds := int(limit.Window.Seconds())
	policy := fmt.Sprintf("%q;q=%d;w=%d", rateLimitPolicy, limit.Requests, seconds)
	detail := fmt.Sprintf("Tokens of one name may send %d requests per %d s. Wait as many seconds as Retry-After says.",
		limit.Requests, seconds)
	return func(c echo.Context) error {
		left := callers.take(exchangeOf(c.Request().Context()).token.Name)
		header := c.Response().Header()
		header.Set(rateLimitHeader, fmt.Sprintf("%q;r=%d;t=%s", rateLimitPolicy, left.remaining, wholeSeconds(left.next)))
		header.Set(rateLimitPolicyHeader, policy)
		if left.wait == 0 {
			return nil
		}
		return &refusal{
			slug: tooManyRequests, detail: detail, isLimited: true,
			header: map[string]string{retryAfterHeader: wholeSeconds(left.wait)},
		}
	}
}

// authorize refuses the caller unless the token allows the operation.
func authorize(op *contract.Operation) echo.HandlerFunc {
	return func(c echo.Context) error {
		if slices.Contains(exchangeOf(c.Request().Context()).token.Operations, op.ID) {
			return nil
		}
		parameters := fmt.Sprintf(`, error="insufficient_scope", scope=%q`, op.ID)
		return &refusal{
			slug: forbidden, detail: fmt.Sprintf("The token does not allow %s. Ask the operator for one that does.", op.ID),
			header: map[string]string{challengeHeader: challenge + parameters}, token: tokenForbidden,
		}
	}
}
