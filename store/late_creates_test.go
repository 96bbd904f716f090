package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store"
)

// If a batch fails, a create whose deadline has passed is refused. The others are stored by the next batch.
func TestLateCreateIsRefusedAlone(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	opened.SetLeastTime(time.Second)
	hasty, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	untilLate := func(func(statements) error, statements) error {
		<-hasty.Done()
		return fmt.Errorf("%w: no response", store.ErrUnavailable)
	}
	errs := faulty.inOneQueue(t, opened, 3, func(i int) error {
		ctx := t.Context()
		if i == 1 {
			ctx = hasty
		}
		// A create without a deadline is not claimed again.
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, _, err := opened.CreateOAuth2Provider(ctx, store.CreateRequest{Name: "late", CreatedBy: "caller"},
			store.OAuth2Settings{ClientID: fmt.Sprint(i), PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
		return err
	}, untilLate)
	if errs[0] != nil || !errors.Is(errs[1], store.ErrUnavailable) || errs[2] != nil {
		t.Errorf("errors are %v, want only one, of the second create", errs)
	}
}
