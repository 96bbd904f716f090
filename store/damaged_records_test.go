package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// Records with the secret of another record, and those without settings, are yielded as errors in order, also at the
// edges of pages, and hide no other record.
func TestDamagedRecordsAreYieldedInOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	const count = 1200
	if err := storetest.FillSQLite(t.Context(), path, count); err != nil {
		t.Fatal(err)
	}
	const damaged = "pk IN (1, 2, 499, 500, 501, 1000, 1001, 1199, 1200)"
	const other = " = (SELECT client_secret FROM oauth2_providers WHERE pk = 3) WHERE "
	execute(t, path, "UPDATE oauth2_providers SET client_secret"+other+damaged)
	execute(t, path, "UPDATE workspace_directory_providers SET credentials"+other+damaged)
	execute(t, path, "DELETE FROM oauth2_providers WHERE pk IN (2, 500)")
	execute(t, path, "DELETE FROM workspace_directory_providers WHERE pk IN (2, 500)")
	database := create(t, path)
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
