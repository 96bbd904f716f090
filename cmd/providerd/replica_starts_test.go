//go:build slow

package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// The password may be in a file, as with every program that uses libpq.
func TestPasswordFromAFile(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	parsed, err := url.Parse(cluster.CreateDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	passwords := filepath.Join(folder, "passwords")
	if err := os.WriteFile(passwords, []byte("*:*:*:*:"+cluster.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	create := newCommand(t.Context(), folder, "key", "create", "--keyset", "keyset.json")
	if output, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	parsed.User = url.User(parsed.User.Username())
	withFile := *parsed
	withFile.RawQuery += "&passfile=" + url.QueryEscape(passwords)
	for name, start := range map[string]struct{ url, environment string }{
		"PGPASSFILE": {parsed.String(), "PGPASSFILE=" + passwords},
		"passfile":   {withFile.String(), "PGPASSFILE="},
	} {
		server, err := startProcessWith(t.Context(), folder, []string{start.environment},
			"--database", start.url, "--keyset", "keyset.json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := server.stop(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = startProcessWith(t.Context(), folder, []string{"PGPASSFILE="}, "--database", parsed.String(), "--keyset", "keyset.json")
	if err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("without a password: %v", err)
	}
}
