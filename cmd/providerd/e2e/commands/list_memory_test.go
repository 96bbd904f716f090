//go:build slow

package commands_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

const (
	// defaultListRows is the default; "make list-million" sets more.
	defaultListRows = 3_000
	// maxListKiB is the maximum memory of a list of any length.
	maxListKiB = 64 << 10
)

// TestListsInLittleMemory runs every list, in every format, and every export with many rows.
func TestListsInLittleMemory(t *testing.T) {
	t.Parallel()
	rows := providerdtest.EnvCount(t, "PROVIDERD_LIST_ROWS", defaultListRows)
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
			arguments := strings.Fields(test.line)
			if format != "" {
				arguments = append(arguments, "--output", format)
			}
			command := providerdtest.Command(t.Context(), dir, arguments...)
			start := time.Now()
			count, peak := countRows(t, command, format)
			t.Logf("%s, %d rows: %.1f s, at most %d MiB of memory",
				strings.Join(arguments, " "), count, time.Since(start).Seconds(), peak>>10)
			if count != test.rows || peak > maxListKiB {
				t.Errorf("%v: %d rows in %d KiB, want %d in at most %d", arguments, count, peak, test.rows, maxListKiB)
			}
		}
	}
}

// countRows returns the number of rows in the output of a command, and its peak memory in KiB.
func countRows(t *testing.T, command *exec.Cmd, form string) (rows, peak int) {
	t.Helper()
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	begins := regexp.MustCompile(map[string]string{"table": "^[^A-Z]", "json": `^\{`}[form])
	if begins.String() == "" {
		begins = regexp.MustCompile("^- ")
	}
	lines := bufio.NewScanner(stdout)
	for read := 0; lines.Scan(); read++ {
		if begins.Match(lines.Bytes()) {
			rows++
		}
		if read%1000 == 0 {
			peak = max(peak, providerdtest.PeakKiB(t, command))
		}
	}
	if err := errors.Join(lines.Err(), command.Wait()); err != nil {
		t.Fatalf("%v: %v", command.Args, err)
	}
	return rows, peak
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
