package sqlite_test

import (
	"testing"

	"gorm.io/gorm"
)

// Commits are durable because of these settings, which every connection that commits must have.
func TestSettingsOfEveryConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, want := range map[string]struct{ batches, changes, reads string }{
		"journal_mode":       {"wal", "wal", "wal"},
		"synchronous":        {"2", "2", "2"},
		"foreign_keys":       {"0", "1", "1"},
		"busy_timeout":       {"5000", "5000", "5000"},
		"query_only":         {"0", "0", "1"},
		"wal_autocheckpoint": {"0", "1000", "1000"},
		"journal_size_limit": {"134217728", "-1", "-1"},
	} {
		got := want
		read := func(into *string) func(tx *gorm.DB) error {
			return func(tx *gorm.DB) error { return tx.Raw("PRAGMA " + name).Scan(into).Error }
		}
		for _, err := range []error{
			r.inBatch(t.Context(), read(&got.batches)),
			r.Change(t.Context(), read(&got.changes)),
			read(&got.reads)(r.Reader().WithContext(t.Context())),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		if got != want {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	r.close(t)
}
