//go:build proof

package neighbors_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func readers() []neighbor {
	return []neighbor{
		{
			"sqlite3", "`.backup`, `VACUUM INTO`, checkpoints, `.dump`, `VACUUM`",
			"Creates wait while `VACUUM` writes. `.dump` lacks `application_id`: load it with `PRAGMA application_id` from the original.",
			func(t *testing.T) (string, counts) {
				return printed(t, `^[\d.]+`, "sqlite3", "--version"), readBeside(t, func(database, copied string) []*exec.Cmd {
					var commands []*exec.Cmd
					for _, command := range []string{
						".backup " + copied, "VACUUM INTO '" + copied + ".vacuumed'", "PRAGMA wal_checkpoint(TRUNCATE)", ".dump", "VACUUM",
						"PRAGMA wal_checkpoint(RESTART)", "SELECT count(*) FROM providers",
					} {
						commands = append(commands, exec.CommandContext(t.Context(), "sqlite3", "-cmd", ".timeout 20000", database, command))
					}
					return commands
				})
			},
		},
		{
			"Python's sqlite3", "read all records 20 times", "Open with `mode=ro`, and close after each read.",
			func(t *testing.T) (string, counts) {
				const program = `import sqlite3, sys
for _ in range(20):
    connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    assert len(connection.execute("SELECT * FROM providers").fetchall()) > 0
    connection.close()`
				return printed(t, `[\d.]+`, "python3", "-c", "import sqlite3; print(sqlite3.sqlite_version)"),
					readBeside(t, func(database, _ string) []*exec.Cmd {
						return []*exec.Cmd{exec.CommandContext(t.Context(), "python3", "-c", program, database)}
					})
			},
		},
		{
			"better-sqlite3", "read all records 20 times", "Open with `readonly: true`.",
			func(t *testing.T) (string, counts) {
				const version, program = "12.4.6", `const open = require("better-sqlite3");
for (let n = 0; n < 20; n++) {
  const database = open(process.argv[1], { readonly: true });
  if (database.prepare("SELECT * FROM providers").all().length === 0) throw new Error("no records");
  database.close();
}`
				dir := t.TempDir()
				install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "better-sqlite3@"+version)
				install.Dir = dir
				processtest.Run(t, install)
				return version, readBeside(t, func(database, _ string) []*exec.Cmd {
					command := exec.CommandContext(t.Context(), "node", "-e", program, database)
					command.Dir = dir
					return []*exec.Cmd{command}
				})
			},
		},
	}
}

// readBeside runs commands, several times, on the database of a server under load.
func readBeside(t *testing.T, commands func(database, copied string) []*exec.Cmd) counts {
	t.Helper()
	dir := t.TempDir()
	server, database := providerdtest.Serve(t, dir), filepath.Join(dir, "data", "providerd.db")
	l := start(t, to(server))
	for range 3 {
		l.WaitForMore(t, 1000)
		for _, command := range commands(database, filepath.Join(t.TempDir(), "copied.db")) {
			processtest.Run(t, command)
		}
	}
	l.WaitForMore(t, 1000)
	l.Stop()
	server.Stop(t)
	providerdtest.CheckIntegrity(t, database)
	return l.count(t, providerdtest.Stored(t, dir))
}
