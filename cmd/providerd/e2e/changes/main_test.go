// Package changes_test changes, renames and deletes records with "providerd apply --as" and "providerd provider update"
// while the program is killed, and beside servers and other commands. It also measures the memory of commands that read
// many records.
//
// Start with model_test.go, the model that the records are compared with.
package changes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain also runs the test binary as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }

// site is a database with its servers. caller is the name of the token in data/initial-token.
type site struct {
	dir, caller string
	environment []string
	servers     []*providerdtest.Server
}

// sites returns a function for each kind of database that starts servers over it.
func sites() map[string]func(t *testing.T) *site {
	return map[string]func(t *testing.T) *site{"sqlite": overSQLite, "postgres": overPostgres}
}

func overSQLite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	return &site{dir: dir, caller: "initial", servers: []*providerdtest.Server{providerdtest.Serve(t, dir)}}
}

func overPostgres(t *testing.T) *site {
	t.Helper()
	return overURL(t, postgrestest.NewCluster(t).CreateDatabase(t), 2)
}

// overURL starts replicas over an empty database of PostgreSQL.
func overURL(t *testing.T, url string, replicas int) *site {
	t.Helper()
	fleet := providerdtest.StartFleet(t, os.Args[0], url, replicas)
	return &site{
		dir: fleet.Dir, caller: "ci", servers: fleet.Replicas,
		environment: []string{"PROVIDERD_DATABASE=" + url, "PROVIDERD_KEYSET=" + filepath.Join(fleet.Dir, "keyset.json")},
	}
}

// command returns a command of providerd that uses the database.
func (s *site) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	return providerdtest.Command(t.Context(), s.dir, append(s.environment, arguments...)...)
}

// run runs a command, which must succeed, and returns its output and messages.
func (s *site) run(t *testing.T, arguments ...string) string {
	t.Helper()
	return processtest.Run(t, s.command(t, arguments...))
}
