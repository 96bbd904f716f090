package store_test

import (
	"errors"
	"fmt"
	"testing"

	"example.com/providerd/store"
)

// While creates are refused, so are validations. Replays still work, and a create in the same batch is tried.
func TestValidationIsRefusedLikeCreates(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	if _, _, err := keyedCreate(t, opened, "replay"); err != nil {
		t.Fatal(err)
	}
	refusal := fmt.Errorf("%w: no space left", store.ErrUnavailable)
	faulty.count(func(f *faultyDatabase) { f.refusal = refusal })
	validate := func(key string) error {
		_, _, err := opened.CreateOAuth2Provider(t.Context(), store.CreateRequest{
			Name: key, CreatedBy: "caller", IdempotencyKey: &key, BodyDigest: []byte(key), ValidateOnly: true,
		}, store.OAuth2Settings{ClientID: key})
		return err
	}
	errs := faulty.inOneQueue(t, opened, 3, func(i int) error {
		if i == 0 {
			return validate("new")
		}
		_, _, err := keyedCreate(t, opened, []string{"replay", "create"}[i-1])
		return err
	})
	if !errors.Is(errs[0], refusal) || errs[1] != nil || errs[2] != nil {
		t.Errorf("errors of a validation, a replay and a create are %v, want %v and none", errs, refusal)
	}
	if err := validate("replay"); err != nil {
		t.Errorf("validation of a replay: %v", err)
	}
	faulty.count(func(f *faultyDatabase) { f.refusal = nil })
	if err := validate("new"); err != nil {
		t.Errorf("validation after recovery: %v", err)
	}
}
