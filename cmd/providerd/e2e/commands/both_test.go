package commands_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/store/postgres/postgrestest"
)

// TestCommandLineOverBothDatabases runs the scripts in testdata/both over SQLite and PostgreSQL. Every
// command uses the database of the script.
func TestCommandLineOverBothDatabases(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	for name, database := range map[string]func(dir string) string{
		"sqlite":   func(dir string) string { return "sqlite:" + filepath.Join(dir, "providerd.db") },
		"postgres": func(string) string { return cluster.CreateDatabase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Dir: "testdata/both", RequireExplicitExec: true, Cmds: scriptCommands(t),
				Setup: func(script *testscript.Env) error {
					url := database(script.WorkDir)
					script.Setenv("PROVIDERD_DATABASE", url)
					script.Setenv("PROVIDERD_KEYSET", filepath.Join(script.WorkDir, "keyset.json"))
					return nil
				},
			})
		})
	}
}
