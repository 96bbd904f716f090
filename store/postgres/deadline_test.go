//go:build slow

package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
)

// A create with less time left than a transaction may take is refused before it begins. It does not use up its key or
// delay others.
func TestLateCreateIsRefused(t *testing.T) {
	t.Parallel()
	opened := openStore(t, postgrestest.NewCluster(t).CreateDatabase(t), newKeyset(t))
	late, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := keyedCreate(late, opened, "late"); !errors.Is(err, store.ErrUnavailable) || late.Err() != nil {
		t.Errorf("error is %v, %v, want ErrUnavailable immediately", err, late.Err())
	}
	if replayed, err := keyedCreate(t.Context(), opened, "late"); err != nil || replayed {
		t.Errorf("replayed is %v, %v", replayed, err)
	}
}
