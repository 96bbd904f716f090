package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/gen/api"
	"example.com/providerd/store"
)

// madeBefore is the record that an idempotency key made, which is then used for another body.
type madeBefore struct {
	pk int32
	// differs are JSON pointers of the fields whose values are others than those of the record.
	differs []string
}

// explainReuse returns an error of the store: as the refusal that tells what differs, where it says that an idempotency
// key was used for another body. Pair turns the record that the key made into what was answered and what the body asks
// for, both as records of the API.
func explainReuse[Stored store.Record](
	ctx context.Context, s *Server, err error, operationID string, pair func(stored Stored) (answered, asked any),
) error {
	reused, ok := errors.AsType[*store.KeyReusedError](err)
	if !ok {
		return err
	}
	op, _ := s.contract.operation(operationID)
	before := &madeBefore{pk: reused.PK}
	err = s.bodies.compare(ctx, func() error {
		record, err := s.store.MadeBefore(ctx, reused)
		if err != nil {
			return fmt.Errorf("compare with provider %d: %w", reused.PK, err)
		}
		stored, ok := record.(Stored)
		if !ok {
			return fmt.Errorf("compare with provider %d: it is a %T", reused.PK, record)
		}
		before.differs, err = op.differing(pair(stored))
		return err
	})
	if err != nil {
		return err
	}
	return &refusal{
		slug: idempotencyKeyReused, detail: before.detail(), pk: &before.pk, violations: before.violations(),
	}
}

func (b *madeBefore) detail() string {
	if len(b.differs) == 0 {
		return fmt.Sprintf("This Idempotency-Key made provider %d from another body before, which means the same: it "+
			"differs in how values are written, in defaults that are written out, or in fields that are ignored. Send the "+
			"first body again to get the record.", b.pk)
	}
	return fmt.Sprintf("This Idempotency-Key made provider %d from another body before, with other values of %s. Send "+
		"the first body again, or use a new key.", b.pk, strings.ReplaceAll(strings.Join(b.differs, ", "), "/", ""))
}

func (b *madeBefore) violations() []api.Violation {
	list := make([]api.Violation, len(b.differs))
	for i, pointer := range b.differs {
		list[i] = api.Violation{
			Pointer: pointer, Code: api.ViolationCodeDiffers, Detail: fmt.Sprintf("has another value in provider %d", b.pk),
		}
	}
	return list
}

// differing returns the fields of the body whose values differ in two records, in the order of the contract. Values are
// compared as JSON, and none is in the result or the error.
func (o operation) differing(one, other any) ([]string, error) {
	a, err := membersOf(one)
	if err != nil {
		return nil, err
	}
	b, err := membersOf(other)
	if err != nil {
		return nil, err
	}
	differs := []string{}
	for _, field := range o.fields {
		same, err := isSame(a[field.name], b[field.name])
		if err != nil {
			return nil, err
		}
		if !same {
			differs = append(differs, string(field.pointer()))
		}
	}
	return differs, nil
}

func membersOf(record any) (map[string]jsontext.Value, error) {
	var members map[string]jsontext.Value
	text, err := json.Marshal(record)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		return nil, errors.New("a record cannot be rendered")
	}
	return members, nil
}

func isSame(a, b jsontext.Value) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	one, err := digest(a)
	if err != nil {
		return false, err
	}
	other, err := digest(b)
	return bytes.Equal(one, other), err
}
