package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store"
)

// Damaged records are yielded as errors in order, also at the edges of pages, and hide no other record.
func TestDamagedRecordsAreYieldedInOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	const count = 1200
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() {
			var err error
			if i%2 == 0 {
				err = database.Submit(t.Context(), fmt.Sprint(i)).Wait()
			} else {
				_, _, err = database.CreateWorkspaceDirectoryProvider(t.Context(), store.CreateRequest{Name: "x"},
					store.WorkspaceDirectorySettings{PropertyMappings: []uuid.UUID{}, PropertyMappingsGroup: []uuid.UUID{}})
			}
			if err != nil {
				t.Error(err)
			}
		})
		if i%store.QueueLength == 0 {
			group.Wait()
		}
	}
	group.Wait()
	const damaged = "pk IN (1, 2, 499, 500, 501, 1000, 1001, 1199, 1200)"
	execute(t, path, "UPDATE oauth2_providers SET client_secret = x'00' WHERE "+damaged)
	execute(t, path, "UPDATE workspace_directory_providers SET credentials = x'00' WHERE "+damaged)
	execute(t, path, "DELETE FROM oauth2_providers WHERE pk IN (2, 500)")
	execute(t, path, "DELETE FROM workspace_directory_providers WHERE pk IN (2, 500)")
	var got []string
	last := int32(0)
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		last++
		switch {
		case errors.Is(err, store.ErrDamaged) && slices.Contains(strings.FieldsFunc(err.Error(), isNotDigit), fmt.Sprint(last)):
			got = append(got, fmt.Sprint(last))
		case err != nil || record.Common().PK != last:
			t.Fatalf("in place of %d: %+v, %v", last, record, err)
		}
	}
	if want := "1 2 499 500 501 1000 1001 1199 1200"; last != count || strings.Join(got, " ") != want {
		t.Errorf("of %d records, %v are damaged, want %s", last, got, want)
	}
}

func isNotDigit(r rune) bool { return r < '0' || r > '9' }
