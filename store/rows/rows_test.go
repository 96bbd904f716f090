package rows_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// Records with the secret of another record, and those with a value that cannot be read, are yielded as errors in order, also at the
// edges of pages, and hide no other record.
func TestDamagedRecordsAreYieldedInOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	const count = 1200
	storetest.FillSQLite(t, path, count)
	const damaged = "pk IN (1, 2, 499, 500, 501, 1000, 1001, 1199, 1200)"
	storetest.Execute(t, path, "UPDATE providers SET secret = (SELECT secret FROM providers WHERE pk = 3) WHERE "+damaged)
	storetest.Execute(t, path, "UPDATE providers SET property_mappings = 'no list' WHERE pk IN (2, 500)")
	database := storetest.Create(t, path)
	var got []string
	last := int64(0)
	for record, err := range database.Providers.Opened(t.Context(), database.Providers.List(t.Context(), store.Filter{}, 0)) {
		last++
		switch {
		case errors.Is(err, store.ErrDamaged) && strings.Contains(err.Error(), fmt.Sprintf("provider %d: ", last)):
			got = append(got, fmt.Sprint(last))
		case err != nil || record.Common().PK != last:
			t.Fatalf("in place of %d: %+v, %v", last, record, err)
		}
	}
	if want := "1 2 499 500 501 1000 1001 1199 1200"; last != count || strings.Join(got, " ") != want {
		t.Errorf("of %d records, %v are damaged, want %s", last, got, want)
	}
}
