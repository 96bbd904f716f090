package sqlite_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Once a newer program has migrated the database, nothing more is stored, and what was stored before stays.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	defer r.close(t)
	if err := r.commit(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	execute(t, r.path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)")
	for range 2 {
		for what, err := range map[string]error{
			"Commit": r.commit(t.Context(), "committed"),
			"Change": r.Change(t.Context(), func(tx *gorm.DB) error { return insertApplication(tx, "changed") }),
			"Check":  r.Check(t.Context()),
		} {
			if !errors.Is(err, database.ErrUnavailable) || !errors.Is(err, database.ErrNewer) ||
				!strings.Contains(err.Error(), "upgrade providerd") {
				t.Errorf("%s: error is %v, want ErrUnavailable and ErrNewer", what, err)
			}
		}
	}
	if got := r.slugs(t); len(got) != 1 {
		t.Errorf("stored: %v", got)
	}
	execute(t, r.path, "DELETE FROM goose_db_version WHERE version_id = 999")
	if err := errors.Join(r.commit(t.Context(), "after"), r.Check(t.Context())); err != nil {
		t.Error(err)
	}
}
