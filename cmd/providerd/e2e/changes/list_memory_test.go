//go:build slow

package changes_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// maxListKiB is the maximum memory of a list of any length.
const maxListKiB = 64 << 10

// TestListsInLittleMemory runs every list, in every format, and every export with many rows.
func TestListsInLittleMemory(t *testing.T) {
	t.Parallel()
	rows := providerdtest.EnvCount(t, "PROVIDERD_LIST_ROWS", defaultRows)
	dir := t.TempDir()
	fillLists(t, dir, rows)
	for _, test := range []struct {
		line    string
		formats []string
		// rows is the expected number.
		rows int
	}{
		{"provider list", []string{"table", "json", "yaml"}, rows},
		{"provider list --since 1d --created-by ci --after 1", []string{"table"}, rows - 1},
		{"provider list --name nobody", []string{"json"}, 0},
		{"provider advise", []string{"table", "json", "yaml"}, rows - rows/10},
		{"provider export", []string{""}, rows},
		{"provider export --reveal", []string{""}, rows},
		{"token list", []string{"table", "json", "yaml"}, rows},
		{"application list", []string{"table", "json", "yaml"}, rows},
		{"audit", []string{"table", "json", "yaml"}, 4*rows + 1},
		{"audit --kind oauth2", []string{"table"}, 3*rows - rows/10},
	} {
		for _, format := range test.formats {
			line, begins := test.line, map[string]string{"table": "^[^A-Z]", "json": `^\{`, "yaml": "^- ", "": "^- "}[format]
			if format != "" {
				line += " --output " + format
			}
			peak := measure(t, dir, line, "listed", 0)
			if count := countLines(t, filepath.Join(dir, "listed"), begins); count != test.rows || peak > maxListKiB {
				t.Errorf("%s: %d rows in %d KiB, want %d in at most %d", line, count, peak, test.rows, maxListKiB)
			}
		}
	}
}

// fillLists creates a database with this many providers, deleted providers, tokens and applications. Each application
// has a provider and a backchannel provider.
func fillLists(t *testing.T, dir string, rows int) {
	t.Helper()
	providerdtest.Fill(t, dir, rows)
	db, err := sql.Open("sqlite3", filepath.Join(dir, "data", "providerd.db?_foreign_keys=on"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO deleted_providers SELECT pk + @rows, 'oauth2', name, created_at, created_by, request_id, remote_address, '',
			created_at FROM providers`,
		`INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at)
			SELECT 'ci', 'pvd_abcdef', request_id || pk, '["providers_oauth2_create"]', created_at, created_at FROM providers
			WHERE @rows > 0`,
		`INSERT INTO applications (slug, name, provider_pk)
			SELECT 'shop-' || pk, 'Shop', iif(kind = 'oauth2', pk, NULL) FROM providers WHERE @rows > 0`,
		`INSERT INTO backchannels SELECT id, id FROM applications WHERE @rows > 0`,
	} {
		if _, err := db.ExecContext(context.Background(), statement, sql.Named("rows", rows)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
