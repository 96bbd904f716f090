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

const (
	challengeHeader = "WWW-Authenticate"
	bearer          = "Bearer"
	// tokenLength is the length of a token, in characters.
	tokenLength = 44
	askForNew   = "Ask the operator for a new one."
)

const damagedTokenDetail = "The stored entry of the access token is damaged; trying again does not help. Nothing was " +
	"stored. Report this to the operator of the server, or use another token."

const sendBearer = `Send the header "Authorization: Bearer TOKEN" with a valid access token.`

// authenticate identifies the caller by its bearer token (RFC 6750 section 2.1). Tokens outside the Authorization
// header are ignored.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		text, flaw := bearerToken(c.Request().Header)
		if flaw != "" {
			return &refusal{
				slug: unauthorized, detail: flaw + " " + sendBearer,
				header: map[string]string{challengeHeader: challenge("")}, token: tokenMissing,
			}
		}
		begun := time.Now()
		token, err := s.store.FindToken(c.Request().Context(), text)
		exchangeOf(c.Request().Context()).waited = time.Since(begun)
		switch {
		case errors.Is(err, store.ErrTokenMistyped):
			return s.invalidToken(c, tokenMistyped, mistypedHint(text), err)
		case errors.Is(err, store.ErrNotFound):
			return s.invalidToken(c, tokenUnknown, askForNew, err)
		case errors.Is(err, store.ErrDamaged):
			return unavailableUntilRepaired(damagedTokenDetail, err)
		case err != nil:
			return fmt.Errorf("authenticate: %w", err)
		}
		exchangeOf(c.Request().Context()).token = token
		switch state := token.State(time.Now()); state {
		case store.TokenActive:
		case store.TokenExpired:
			until := token.ExpiresAt.UTC().Format(time.RFC3339)
			return s.invalidToken(c, tokenExpired, "It was valid until "+until+". "+askForNew, nil)
		case store.TokenRevoked:
			return s.invalidToken(c, tokenRevoked, askForNew, nil)
		}
		listener.MarkTransferring(c.Request().Context())
		c.Response().Before(func() { listener.MarkTransferring(c.Request().Context()) })
		return next(c)
	}
}

// bearerToken returns the token of the Authorization header, or a sentence about a header without one.
func bearerToken(header http.Header) (token, flaw string) {
	values := header.Values(echo.HeaderAuthorization)
	switch len(values) {
	case 0:
		return "", "The request has no Authorization header."
	case 1:
	default:
		return "", "The request has several Authorization headers."
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	isBearer := strings.EqualFold(scheme, bearer)
	switch {
	case isBearer && token != "":
		return token, ""
	case isBearer:
		return "", "The Authorization header has no token after Bearer."
	case scheme == "":
		return "", "The Authorization header is empty."
	case strings.HasPrefix(scheme, `"`), strings.HasPrefix(scheme, "'"):
		return "", "The Authorization header is in quotation marks."
	case token == "":
		return "", "The Authorization header has no scheme before the token."
	default:
		return "", "The Authorization header has a scheme other than Bearer."
	}
}

// mistypedHint returns what to do about a text that is not a token. It reveals only what the text itself shows.
func mistypedHint(text string) string {
	first, _, _ := strings.Cut(text, " ")
	switch {
	case strings.EqualFold(first, bearer):
		return "The Authorization header has the word Bearer twice; send it once."
	case strings.ContainsAny(text, "\"'"):
		return "It is in quotation marks; remove them."
	case len(text) != tokenLength || !strings.HasPrefix(text, "pvd_"):
		return "It is not a whole token, which has 44 characters and begins with pvd_. Copy all of it, and nothing else."
	default:
		return askForNew
	}
}

// invalidToken refuses a token. An address that sent too many invalid ones must wait; valid tokens from that address
// are still accepted.
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
		slug:   unauthorized,
		detail: description + " " + remedy,
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
