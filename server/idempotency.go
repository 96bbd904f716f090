package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

const idempotencyKeyHeader = "Idempotency-Key"

// validateIdempotencyKey refuses a key that the contract does not allow, before anything of the body is read.
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

// noteBodyDigest notes what tells the body of a request with a key from other bodies.
func noteBodyDigest(request *http.Request, body []byte) (err error) {
	if request.Header.Get(idempotencyKeyHeader) != "" {
		exchangeOf(request.Context()).bodyDigest, err = digest(body)
	}
	return err
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

// canonicalize brings JSON into its canonical form (RFC 8785), except for numbers, which keep their digits.
func canonicalize(text *jsontext.Value) error {
	err := text.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return fmt.Errorf("canonicalize JSON: %w", err)
	}
	return nil
}

// replayedHeader is the value of Idempotency-Replayed; nil if the record is new.
func replayedHeader(replayed bool) *string {
	if !replayed {
		return nil
	}
	return new("true")
}

// explainReuse returns an error of the store. If that says that an idempotency key was used for another body, it is
// the refusal that lists what differs. Pair turns the record that the key made into what was answered and what the body
// requests, both as records of the API.
func explainReuse[Stored store.Record](
	ctx context.Context, s *Server, err error, pair func(stored Stored) (answered, requested any),
) error {
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok {
		return err
	}
	op, _ := s.contract.Operation(exchangeOf(ctx).operation)
	var differs []string
	err = s.bodies.compare(ctx, func() error {
		record, err := s.store.PriorRecord(ctx, reused)
		if err != nil {
			return fmt.Errorf("compare with provider %d: %w", reused.PK, err)
		}
		stored, ok := record.(Stored)
		if !ok {
			return fmt.Errorf("compare with provider %d: it is a %T", reused.PK, record)
		}
		answered, requested := pair(stored)
		differs, err = differing(op, answered, requested)
		return err
	})
	if err != nil {
		return err
	}
	return keyReused(reused.PK, differs)
}

// keyReused is the refusal of a key that made a record from another body, which differs in the fields that the pointers
// lead to.
func keyReused(pk int32, differs []string) *refusal {
	refused := &refusal{slug: idempotencyKeyReused, pk: &pk}
	if len(differs) == 0 {
		refused.detail = fmt.Sprintf("This Idempotency-Key made provider %d from another body before, which means the "+
			"same: it differs in how values are written, in defaults that are written out, or in fields that are ignored. "+
			"Send the first body again to get the record.", pk)
		return refused
	}
	refused.detail = fmt.Sprintf("This Idempotency-Key made provider %d from another body before, with other values of "+
		"%s. Send the first body again, or use a new key.", pk, strings.ReplaceAll(strings.Join(differs, ", "), "/", ""))
	for _, pointer := range differs {
		refused.violations = append(refused.violations, api.Violation{
			Pointer: pointer, Code: api.ViolationCodeDiffers, Detail: fmt.Sprintf("has another value in provider %d", pk),
		})
	}
	return refused
}

// differing returns the fields of the body whose values differ in two records, in the order of the contract. Values are
// compared as JSON, and none is in the result or the error.
func differing(op *contract.Operation, one, other any) ([]string, error) {
	a, err := membersOf(one)
	if err != nil {
		return nil, err
	}
	b, err := membersOf(other)
	if err != nil {
		return nil, err
	}
	var differs []string
	for _, name := range op.FieldNames() {
		if !bytes.Equal(a[name], b[name]) {
			differs = append(differs, string(jsontext.Pointer("").AppendToken(name)))
		}
	}
	return differs, nil
}

// membersOf returns the members of a record in their canonical form.
func membersOf(record any) (map[string]jsontext.Value, error) {
	var members map[string]jsontext.Value
	marshalled, err := json.Marshal(record)
	text := jsontext.Value(marshalled)
	if err == nil {
		err = canonicalize(&text)
	}
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		return nil, errors.New("a record cannot be rendered")
	}
	return members, nil
}
