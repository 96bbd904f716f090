package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/token"
)

const retryAfterHeader = "Retry-After"

// refusal is an error with its response. Only the log has the cause.
type refusal struct {
	slug slug
	// detail replaces the detail of the problem kind unless it is empty.
	detail     string
	header     map[string]string
	violations []model.Violation
	// pk identifies the record that a reused idempotency key created; nil for other refusals.
	pk *int64
	// token is why the access token is refused; "" for other refusals.
	token tokenRefusal
	// isLimited is true if the caller exceeded its rate limit.
	isLimited bool
	cause     error
}

// Error describes the refusal for the log.
func (r *refusal) Error() string {
	if r.cause == nil {
		return string(r.slug)
	}
	return fmt.Sprintf("%s: %v", r.slug, r.cause)
}

func (r *refusal) Unwrap() error { return r.cause }

// isCutOff reports whether a request is refused because its connection ended in the middle of its body.
func (r *refusal) isCutOff() bool {
	return r != nil && (errors.Is(r.cause, io.ErrUnexpectedEOF) || errors.Is(r.cause, syscall.ECONNRESET) ||
		errors.Is(r.cause, net.ErrClosed))
}

type tokenRefusal string

const (
	tokenMissing   tokenRefusal = "missing"
	tokenMistyped  tokenRefusal = "mistyped"
	tokenUnknown   tokenRefusal = "unknown"
	tokenExpired                = tokenRefusal(token.Expired)
	tokenRevoked                = tokenRefusal(token.Revoked)
	tokenForbidden tokenRefusal = "forbidden"
)

func retryAfterSecond() map[string]string { return map[string]string{retryAfterHeader: "1"} }

// unavailableUntilRepaired returns the refusal of a request that fails until an operator repairs the database. The
// contract requires a Retry-After; a day is longer than programs wait.
func unavailableUntilRepaired(detail string, cause error) *refusal {
	return &refusal{
		slug: storageUnavailable, detail: detail, header: map[string]string{retryAfterHeader: "86400"}, cause: cause,
	}
}

const problemMediaType = "application/problem+json"

const damagedDetail = "The record that the Idempotency-Key created is damaged; retrying does not help. " +
	"Nothing was stored. Report this to the operator of the server."

func asRefusal(err error) *refusal {
	if known, ok := errors.AsType[*refusal](err); ok {
		return known
	}
	if malformed, ok := errors.AsType[*contract.MalformedError](err); ok {
		return &refusal{slug: malformedJSON, detail: malformed.Detail}
	}
	if invalid, ok := errors.AsType[*contract.InvalidError](err); ok {
		return &refusal{slug: validationFailed, detail: invalid.Detail, violations: invalid.Violations}
	}
	switch {
	case errors.Is(err, echo.ErrNotFound):
		return &refusal{slug: notFound}
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return &refusal{slug: methodNotAllowed}
	case errors.Is(err, store.ErrClientIDTaken):
		return &refusal{slug: clientIDTaken, violations: []model.Violation{{
			Pointer: "/client_id", Code: contract.CodeTaken, Detail: "`client_id` is taken by another provider.",
		}}}
	case errors.Is(err, store.ErrOverloaded):
		return &refusal{slug: overloaded, header: retryAfterSecond()}
	case errors.Is(err, store.ErrOutcomeUnknown):
		return &refusal{slug: outcomeUnknown, header: retryAfterSecond(), cause: err}
	case errors.Is(err, store.ErrDamaged):
		return unavailableUntilRepaired(damagedDetail, err)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return &refusal{slug: storageUnavailable, header: retryAfterSecond(), cause: err}
	default:
		return &refusal{slug: internal, cause: err}
	}
}

// handleError is the only place that turns an error into a problem document (RFC 9457).
func (s *Server) handleError(err error, c echo.Context) {
	exchange := exchangeOf(c.Request().Context())
	if broken, ok := errors.AsType[*net.OpError](err); ok && c.Response().Committed {
		exchange.writeError = broken
		return
	}
	refused := asRefusal(err)
	exchange.refused = refused
	if c.Response().Committed {
		return
	}
	isPathWrong := refused.slug == notFound || refused.slug == methodNotAllowed
	if isPathWrong {
		refused.detail = explainPath(s.config.Contract, refused.slug, c.Request().URL.Path)
	}
	s.readUnread(c)
	problem := s.problems[refused.slug].Problem
	problem.Detail = cmp.Or(refused.detail, problem.Detail)
	problem.RequestID, problem.PK, problem.Errors = exchange.requestID, refused.pk, nil
	if len(refused.violations) > 0 {
		problem.Errors = &refused.violations
	}
	header := c.Response().Header()
	for name, value := range refused.header {
		header.Set(name, value)
	}
	if isPathWrong && isBrowser(c.Request()) {
		if exchange.writeError = s.servePage(c, int(problem.Status), "refused.html", problem); c.Response().Committed {
			return
		}
	}
	header.Set(echo.HeaderContentType, problemMediaType)
	c.Response().WriteHeader(int(problem.Status))
	if err := c.Echo().JSONSerializer.Serialize(c, problem, ""); err != nil {
		exchange.writeError = err
	}
}
