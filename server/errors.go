package server

import (
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
		refused.detail = s.explainPath(refused.slug, c.Request().URL.Path)
	}
	s.readUnread(c)
	kind := s.problems[refused.slug]
	problem := model.Problem{
		Type:      problemPath + string(kind.Slug),
		Title:     kind.Title,
		Status:    kind.Status,
		Detail:    kind.Detail,
		RequestID: exchange.requestID,
		PK:        refused.pk,
	}
	if refused.detail != "" {
		problem.Detail = refused.detail
	}
	if len(refused.violations) > 0 {
		problem.Errors = &refused.violations
	}
	header := c.Response().Header()
	for name, value := range refused.header {
		header.Set(name, value)
	}
	header.Set(echo.HeaderContentType, problemMediaType)
	c.Response().WriteHeader(int(kind.Status))
	if err := c.Echo().JSONSerializer.Serialize(c, problem, ""); err != nil {
		exchange.writeError = err
	}
}

// explainPath returns a detail for a wrong path or method; "" if that of the problem type suffices.
func (s *Server) explainPath(kind slug, path string) string {
	meant := s.contract.SuggestPath(path)
	switch {
	case meant == "":
		return ""
	case kind == methodNotAllowed:
		return "Use POST. This path only creates providers; records are not read, changed or deleted over HTTP."
	default:
		return "There is nothing at this path. To create a provider, POST to " + meant +
			", with the slash at its end; records are not read, changed or deleted over HTTP."
	}
}
