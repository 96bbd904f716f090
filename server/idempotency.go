package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

const idempotencyKeyHeader = "Idempotency-Key"

// validateIdempotencyKey refuses a key that the contract does not allow, before the body is read.
func validateIdempotencyKey(op *contract.Operation) echo.MiddlewareFunc {
	isAllowed := op.HeaderRule(idempotencyKeyHeader)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			keys := c.Request().Header.Values(idempotencyKeyHeader)
			if len(keys) > 1 || len(keys) == 1 && !isAllowed(keys[0]) {
				return &refusal{slug: invalidHeader}
			}
			return next(c)
		}
	}
}

// replayedHeader returns the value of Idempotency-Replayed; nil if the record is new.
func replayedHeader(replayed bool) *string {
	if !replayed {
		return nil
	}
	return new("true")
}

// explainReuse replaces store.ErrKeyReused with a refusal that lists the fields that differ, in the order of the
// contract, and returns other errors unchanged.
func (s *Server) explainReuse(ctx context.Context, err error) error {
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok {
		return err
	}
	op, _ := s.contract.Operation(exchangeOf(ctx).operation)
	var names []string
	for _, name := range op.FieldNames() {
		if slices.Contains(reused.Fields, name) {
			names = append(names, name)
		}
	}
	refused := &refusal{slug: idempotencyKeyReused, pk: &reused.PK}
	refused.detail = fmt.Sprintf("This Idempotency-Key already created provider %d, which has other values of %s. "+
		"Send the values of that provider, or use a new key.", reused.PK, strings.Join(names, ", "))
	for _, name := range names {
		refused.violations = append(refused.violations, model.Violation{
			Pointer: string(jsontext.Pointer("").AppendToken(name)), Code: contract.CodeDiffers,
			Detail: fmt.Sprintf("`%s` has a different value in provider %d.", name, reused.PK),
		})
	}
	return refused
}
