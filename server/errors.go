package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

const problemMediaType = "application/problem+json"

const damagedDetail = "The record that the Idempotency-Key created is damaged; trying again does not help. " +
	"Nothing was stored. Report this to the operator of the server."

// asRefusal returns the refusal for any error.
func asRefusal(err error) *refusal {
	if known, ok := errors.AsType[*refusal](err); ok {
		return known
	}
	if malformed, ok := errors.AsType[*contract.MalformedError](err); ok {
		return &refusal{slug: malformedJSON, detail: malformed.Detail}
	}
	if invalid, ok := errors.AsType[*contract.InvalidError](err); ok {
		return &refusal{slug: validationFailed, detail: invalid.Detail, violations: toAPIViolations(invalid.Violations)}
	}
	if status, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch status.Code {
		case http.StatusNotFound:
			return &refusal{slug: notFound}
		case http.StatusMethodNotAllowed:
			return &refusal{slug: methodNotAllowed}
		}
	}
	return storeRefusal(err)
}

func toAPIViolations(list []contract.Violation) []model.Violation {
	violations := make([]model.Violation, len(list))
	for i, v := range list {
		violations[i] = model.Violation{Code: v.Code, Detail: v.Detail, Pointer: v.Pointer}
	}
	return violations
}

// storeRefusal returns the refusal for an error of the store.
func storeRefusal(err error) *refusal {
	switch {
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
	if refused.slug == notFound || refused.slug == methodNotAllowed {
		refused.detail = explainPath(s.contract, refused.slug, c.Request().URL.Path)
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
	header.Set(echo.HeaderContentType, problemMediaType)
	c.Response().WriteHeader(int(problem.Status))
	if err := c.Echo().JSONSerializer.Serialize(c, problem, ""); err != nil {
		exchange.writeError = err
	}
}
