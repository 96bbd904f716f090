package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	for record, err := range s.database.Providers(t.Context()) {
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
