package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// A panic becomes an error of a batch, which has several callers, and reaches the only caller of a change.
func TestPanicFailsOnlyItsTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for way, commit := range r.ways() {
		var err error
		value := func() (value any) {
			defer func() { value = recover() }()
			err = commit(t.Context(), func(tx *gorm.DB) error {
				if err := insertApplication(tx, "lost"); err != nil {
					t.Error(err)
				}
				panic("out of bounds")
			})
			return nil
		}()
		if told := fmt.Sprint(err, value); !strings.Contains(told, "out of bounds") || errors.Is(err, database.ErrUnavailable) {
			t.Errorf("%s: error is %v, the panic %v", way, err, value)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := errors.Join(r.Check(ctx), r.Change(ctx, executing("DELETE FROM tokens")), r.commit(ctx, way)); err != nil {
			t.Errorf("after a panic in %s: %v", way, err)
		}
		cancel()
	}
	if stored := r.slugs(t); len(stored) != 2 {
		t.Errorf("stored: %v", stored)
	}
	r.close(t)
}
