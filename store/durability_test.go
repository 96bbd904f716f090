package store_test

import (
	"path/filepath"
	"testing"
)

// A 201 means that the record is on disk, which hangs on these settings of SQLite.
func TestSettingsOfEveryConnection(t *testing.T) {
	t.Parallel()
	database := create(t, filepath.Join(t.TempDir(), "test.db"))
	for name, want := range map[string]struct{ writer, reader string }{
		"journal_mode": {"wal", "wal"},
		"synchronous":  {"2", "2"},
		"foreign_keys": {"1", "1"},
		"busy_timeout": {"5000", "5000"},
		"query_only":   {"0", "1"},
	} {
		writer, reader, err := database.Pragmas(t.Context(), name)
		if err != nil || writer != want.writer || reader != want.reader {
			t.Errorf("%s is %s for the writer and %s for readers, %v, want %+v", name, writer, reader, err, want)
		}
	}
}
