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

// recordBodyDigest records the digest of the body of a request with a key.
func recordBodyDigest(request *http.Request, body []byte) (err error) {
	if request.Header.Get(idempotencyKeyHeader) != "" {
		exchangeOf(request.Context()).bodyDigest, err = BodyDigest(body)
	}
	return err
}

// BodyDigest returns the SHA-256 of a body in canonical form, which the store keeps for retries. It returns an error if
// the body is not JSON.
func BodyDigest(body []byte) ([]byte, error) {
	canonical := jsontext.Value(body).Clone()
	if err := canonicalize(&canonical); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(canonical)
	return sum[:], nil
}

// canonicalize converts JSON to its canonical form (RFC 8785), except that numbers keep their digits.
func canonicalize(text *jsontext.Value) error {
	err := text.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return fmt.Errorf("canonicalize JSON: %w", err)
	}
	return nil
}

// replayedHeader returns the value of Idempotency-Replayed; nil if the record is new.
func replayedHeader(replayed bool) *string {
	if !replayed {
		return nil
	}
	return new("true")
}

// explainReuse replaces store.ErrKeyReused with a refusal that lists the fields that differ, and returns other errors
// unchanged. If the record was updated since and nothing differs, it returns the record. pair returns, as records of
// the API, the record that the key created and what the body requests.
func explainReuse[Stored store.Record](
	ctx context.Context, s *Server, err error, pair func(stored Stored) (created, requested any),
) (prior Stored, _ error) {
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok {
		return prior, err
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
		prior = stored
		created, requested := pair(stored)
		differs, err = differing(op, created, requested)
		return err
	})
	if err == nil && (len(differs) > 0 || !reused.IsUpdated) {
		err = keyReused(reused, differs)
	}
	return prior, err
}

// keyReused returns the refusal of a key that created a record from a different body. differs points to the fields that
// differ.
func keyReused(reused *store.KeyReusedError, differs []string) *refusal {
	pk := int64(reused.PK)
	refused := &refusal{slug: idempotencyKeyReused, pk: &pk}
	if len(differs) == 0 {
		refused.detail = fmt.Sprintf("This Idempotency-Key already created provider %d from a different body with the "+
			"same meaning: it differs in notation, in explicit defaults or in ignored fields. Send the first body again to "+
			"get the record.", pk)
		return refused
	}
	fields := strings.ReplaceAll(strings.Join(differs, ", "), "/", "")
	refused.detail = fmt.Sprintf("This Idempotency-Key already created provider %d from a body with different values "+
		"of %s. Send the first body again, or use a new key.", pk, fields)
	if reused.IsUpdated {
		refused.detail = fmt.Sprintf("This Idempotency-Key created provider %d, which was updated since and has different "+
			"values of %s. Send its current values, or use a new key.", pk, fields)
	}
	for _, pointer := range differs {
		refused.violations = append(refused.violations, api.Violation{
			Pointer: pointer, Code: contract.CodeDiffers,
			Detail: fmt.Sprintf("`%s` has a different value in provider %d.", pointer[1:], pk),
		})
	}
	return refused
}

// differing returns pointers to the fields of the body whose values differ in two records, in the order of the
// contract. Values are compared as JSON. Neither the result nor the error contains a value.
func differing(op *contract.Operation, created, requested any) ([]string, error) {
	a, err := membersOf(created)
	if err != nil {
		return nil, err
	}
	b, err := membersOf(requested)
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

// membersOf returns the members of a record in canonical form.
func membersOf(record any) (map[string]jsontext.Value, error) {
	var members map[string]jsontext.Value
	marshaled, err := json.Marshal(record)
	text := jsontext.Value(marshaled)
	if err == nil {
		err = canonicalize(&text)
	}
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		return nil, errors.New("cannot marshal record")
	}
	return members, nil
}
