package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
	"example.com/providerd/server/listener"
	"example.com/providerd/store"
)

const challengeHeader = "WWW-Authenticate"

const damagedTokenDetail = "The stored entry of the access token is damaged; trying again does not help. Nothing was " +
	"stored. Report this to the operator of the server, or use another token."

// authenticate identifies the caller by its bearer token (RFC 6750 section 2.1). Tokens outside the Authorization
// header are ignored.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		text, ok := bearerToken(c.Request().Header)
		if !ok {
			return &refusal{
				slug: unauthorized, header: map[string]string{challengeHeader: challenge("")}, token: tokenMissing,
			}
		}
		begun := time.Now()
		token, err := s.store.FindToken(c.Request().Context(), text)
		exchangeOf(c.Request().Context()).waited = time.Since(begun)
		if errors.Is(err, store.ErrNotFound) {
			reason := tokenUnknown
			if errors.Is(err, store.ErrTokenMistyped) {
				reason = tokenMistyped
			}
			return s.invalidToken(c, "The access token is unknown.", err, reason)
		}
		if errors.Is(err, store.ErrDamaged) {
			return unavailableUntilRepaired(damagedTokenDetail, err)
		}
		if err != nil {
			return fmt.Errorf("authenticate: %w", err)
		}
		exchangeOf(c.Request().Context()).token = token
		if state := token.State(time.Now()); state != store.TokenActive {
			return s.invalidToken(c, fmt.Sprintf("The access token is %s.", state), nil, tokenRefusal(state))
		}
		listener.MarkTransferring(c.Request().Context())
		c.Response().Before(func() { listener.MarkTransferring(c.Request().Context()) })
		return next(c)
	}
}

// bearerToken returns the token of the Authorization header. It returns false if that appears more than once.
func bearerToken(header http.Header) (string, bool) {
	values := header.Values(echo.HeaderAuthorization)
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	return token, found && token != "" && strings.EqualFold(scheme, "Bearer")
}

// invalidToken refuses a token. An address that sent too many invalid ones must wait; valid tokens from that address
// are still accepted.
func (s *Server) invalidToken(c echo.Context, description string, cause error, reason tokenRefusal) error {
	network := networkOf(exchangeOf(c.Request().Context()).remoteAddress)
	if wait := s.attempts.take(network).wait; wait > 0 {
		return &refusal{
			slug: tooManyRequests, header: map[string]string{retryAfterHeader: wholeSeconds(wait)}, cause: cause,
			token: reason,
		}
	}
	parameters := fmt.Sprintf(`, error="invalid_token", error_description=%q`, description)
	return &refusal{
		slug:   unauthorized,
		detail: description + " Ask the operator for a new one.",
		header: map[string]string{challengeHeader: challenge(parameters)},
		cause:  cause,
		token:  reason,
	}
}

// authorize refuses the caller unless the token allows the operation.
func authorize(op *contract.Operation) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if slices.Contains(exchangeOf(c.Request().Context()).token.Operations, op.ID) {
				return next(c)
			}
			parameters := fmt.Sprintf(`, error="insufficient_scope", scope=%q`, op.ID)
			return &refusal{
				slug:   forbidden,
				detail: fmt.Sprintf("The token does not allow %s. Ask the operator for one that does.", op.ID),
				header: map[string]string{challengeHeader: challenge(parameters)},
				token:  tokenForbidden,
			}
		}
	}
}

// challenge returns the value of WWW-Authenticate (RFC 6750 section 3).
func challenge(parameters string) string {
	return `Bearer realm="providerd"` + parameters
}
