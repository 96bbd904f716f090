package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store"
)

// A record that cannot be read is an error in its place, and hides no other.
func TestDamagedRecordHidesNoOther(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	db := s.open(t)
	setSealedSecret(t, db, 1, []byte("rubbish"))
	if _, err := db.ExecContext(t.Context(), "DELETE FROM workspace_directory_providers WHERE pk = 3"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for record, err := range s.database.Providers(t.Context(), store.Filter{}, 0) {
		switch {
		case errors.Is(err, store.ErrDamaged):
			got = append(got, "damaged")
		case err != nil:
			t.Error(err)
		default:
			got = append(got, fmt.Sprint(record.Common().PK))
		}
	}
	if want := "damaged 2 damaged"; !strings.HasPrefix(strings.Join(got, " "), want) {
		t.Errorf("records are %v, want %s", got, want)
	}
	s.expectDamaged(t, 1, "client_secret")
	s.expectDamaged(t, 3, "")
}

// Damaged records stand in their places, also where a page ends or begins.
func TestDamagedRecordsStandInTheirPlaces(t *testing.T) {
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
	var got []string
	last := int32(0)
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		last++
		switch {
		case errors.Is(err, store.ErrDamaged) && strings.Contains(err.Error(), fmt.Sprintf("provider %d:", last)):
			got = append(got, fmt.Sprint(last))
		case err != nil || record.Common().PK != last:
			t.Fatalf("at the place of %d is %+v, %v", last, record, err)
		}
	}
	if want := "1 2 499 500 501 1000 1001 1199 1200"; last != count || strings.Join(got, " ") != want {
		t.Errorf("of %d records %v are damaged, want %s", last, got, want)
	}
}
