// Package providerdtest runs providerd as its clients and operators do: as a process, over HTTP and by its command
// line. It has what several suites of cmd/providerd/e2e share. Programs, waits and ports are in processtest.
//
// Start with Serve: it returns a Server, whose methods send requests and end it. RunCommand, Output and ExpectExit run
// other commands, which Command returns. Stored returns the records of a database, which a Journal compares with the
// responses that clients got. StartFleet starts replicas over one database. Each suite calls Main.
package providerdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/cmd/providerd/command"
	"example.com/providerd/store/storetest/processtest"
)

// The exit statuses of a failure, of a usage error, and of drift that apply reports.
const (
	ExitFailed  = 1
	ExitUsage   = 2
	ExitDiffers = 3
)

// Main runs the tests of a package. The test binary can also run as providerd, so that go test caches results by the
// program's sources.
func Main(m *testing.M) {
	MainAround(m, func(program func() int) int { return program() })
}

// MainAround is Main with a function that runs the program, and may do more. It returns the exit status.
func MainAround(m *testing.M, around func(program func() int) int) {
	testscript.Main(m, map[string]func(){"providerd": func() { os.Exit(around(command.Main)) }})
}

// Path returns the path of a file given its name relative to the root of the module.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, name)
		}
	}
	t.Fatalf("no parent directory has a go.mod: %v", err)
	return ""
}

// ReadFile returns the content of a file of the module.
func ReadFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(Path(t, name))
	processtest.Must(t, err)
	return string(text)
}
