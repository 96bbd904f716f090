package server

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

const idempotencyKeyHeader = "Idempotency-Key"

// checkIdempotencyKey refuses a key that the contract does not allow, before anything of the body is read.
func checkIdempotencyKey(op *contract.Operation) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			keys := c.Request().Header.Values(idempotencyKeyHeader)
			if len(keys) > 1 || len(keys) == 1 && !op.AllowsHeader(idempotencyKeyHeader, keys[0]) {
				return &refusal{slug: invalidHeader}
			}
			return next(c)
		}
	}
}

// digest is the SHA-256 of a body in its canonical form.
func digest(body []byte) ([]byte, error) {
	canonical := jsontext.Value(body).Clone()
	if err := canonicalize(&canonical); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(canonical)
	return sum[:], nil
}

// canonicalize brings JSON into its canonical form (RFC 8785), but for numbers, which keep their digits.
func canonicalize(text *jsontext.Value) error {
	err := text.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return fmt.Errorf("canonicalize JSON: %w", err)
	}
	return nil
}

// createRequest says who asks for a provider.
func createRequest(ctx context.Context, name string, idempotencyKey *string) store.CreateRequest {
	current := exchangeOf(ctx)
	return store.CreateRequest{
		Name:           name,
		CreatedBy:      current.token.Name,
		RequestID:      current.requestID,
		IdempotencyKey: idempotencyKey,
		BodyDigest:     current.bodyDigest,
		RemoteAddress:  current.remoteAddress,
		ValidateOnly:   current.validateOnly,
		Timing:         current.spans.createTiming(),
	}
}

// replayedHeader is the value of Idempotency-Replayed; nil where the record is new.
func replayedHeader(replayed bool) *string {
	if !replayed {
		return nil
	}
	return new("true")
}
