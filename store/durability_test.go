package store_test

import (
	"path/filepath"
	"testing"
)

// A 201 means that the record is on disk, which hangs on these settings of SQLite.
func TestSettingsOfEveryConnection(t *testing.T) {
	t.Parallel()
	database := create(t, filepath.Join(t.TempDir(), "test.db"))
	for name, want := range map[string]struct{ creates, changes, reads string }{
		"journal_mode":       {"wal", "wal", "wal"},
		"synchronous":        {"2", "2", "2"},
		"foreign_keys":       {"0", "1", "1"},
		"busy_timeout":       {"5000", "5000", "5000"},
		"query_only":         {"0", "0", "1"},
		"wal_autocheckpoint": {"0", "1000", "1000"},
		"journal_size_limit": {"134217728", "-1", "-1"},
	} {
		creates, changes, reads, err := database.Settings(t.Context(), name)
		if err != nil || creates != want.creates || changes != want.changes || reads != want.reads {
			t.Errorf("%s is %s for creates, %s for other changes, %s for reads, %v; want %+v",
				name, creates, changes, reads, err, want)
		}
	}
}
