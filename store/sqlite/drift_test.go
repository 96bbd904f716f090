package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/sqlite"
)

// driftAfter describes the schema of a new database after statements of another program.
func driftAfter(t *testing.T, statements string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	if err := create(t, path); err != nil {
		t.Fatal(err)
	}
	execute(t, path, statements)
	view, err := sqlite.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	drift, err := view.Drift(t.Context())
	if err := errors.Join(err, view.Close()); err != nil {
		t.Fatal(err)
	}
	return drift
}

func TestDrift(t *testing.T) {
	t.Parallel()
	for statements, want := range map[string]string{
		"": "",
		"CREATE INDEX reports ON providers (name)":                                    "",
		"CREATE TABLE reports (pk INTEGER); CREATE UNIQUE INDEX once ON reports (pk)": "",
		"CREATE VIEW reports AS SELECT name FROM providers":                           "",
		"ANALYZE":                              "",
		"DROP INDEX providers_idempotency_key": `index "providers_idempotency_key" is missing`,
		"DROP INDEX events_event; CREATE INDEX events_event ON events (event)":                                             `index "events_event" was changed`,
		"CREATE UNIQUE INDEX names ON providers (name)":                                                                    `index "names" was added`,
		"ALTER TABLE tokens ADD COLUMN owner TEXT":                                                                         `table "tokens" was changed`,
		"CREATE TRIGGER t BEFORE INSERT ON PROVIDERS BEGIN SELECT RAISE(IGNORE); END":                                      `trigger "t" was added`,
		"CREATE UNIQUE INDEX names ON Providers (name)":                                                                    `index "names" was added`,
		"DROP TABLE backchannels":                                                                                          `table "backchannels" is missing`,
		"CREATE TRIGGER \"a\nb\" BEFORE INSERT ON providers BEGIN SELECT RAISE(IGNORE); END":                               "trigger \"a\uFFFDb\" was added",
		"CREATE TABLE reports (pk INTEGER); CREATE TRIGGER counting AFTER INSERT ON reports BEGIN DELETE FROM tokens; END": "",
	} {
		t.Run(strings.ReplaceAll(statements, "\n", " "), func(t *testing.T) {
			t.Parallel()
			drift := driftAfter(t, statements)
			if want == "" && len(drift) > 0 || want != "" && !slices.Contains(drift, want) {
				t.Errorf("drift is %q, want %q", drift, want)
			}
		})
	}
}

// However many objects are added, no existing object is reported missing, and only a few additions are described.
func TestDriftIsBounded(t *testing.T) {
	t.Parallel()
	var statements strings.Builder
	statements.WriteString("BEGIN;")
	for i := range 2000 {
		fmt.Fprintf(&statements, "CREATE TRIGGER t%04d%s AFTER INSERT ON providers BEGIN DELETE FROM tokens; END;", i,
			strings.Repeat("n", 300))
	}
	// It comes after them then.
	statements.WriteString("DROP INDEX events_event; CREATE INDEX events_event ON events (event, subject, id) WHERE event <> 'provider created'; COMMIT")
	drift := driftAfter(t, statements.String())
	if len(drift) != 6 || drift[5] != "and more" {
		t.Fatalf("drift is %q", drift)
	}
	for i, difference := range drift[:5] {
		if !strings.HasPrefix(difference, fmt.Sprintf(`trigger "t%04dnnn`, i)) || len(difference) > 250 {
			t.Errorf("difference %d: %q", i, difference)
		}
	}
}
