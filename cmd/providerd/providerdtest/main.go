// Package providerdtest lets tests run providerd as its callers and operators do: as a process, over HTTP and by its
// command line. It has what several suites of cmd/providerd/e2e share: servers that are started, stopped and killed,
// requests, load with a journal of what was answered, replicas, what operators watch, certificates, and programs that
// are built with a changed source. What one suite alone needs is there.
//
// Start with Serve in process.go. A suite lets Main run its tests.
package providerdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/cmd/providerd/command"
)

// What the program ends with where something fails, and where it is called in a wrong way.
const (
	ExitFailed = 1
	ExitUsage  = 2
)

// Main runs the tests of a package. It lets their binary be started as providerd, so that go test knows which tests a
// change of the program concerns.
func Main(m *testing.M) {
	testscript.Main(m, map[string]func(){"providerd": func() { os.Exit(command.Main()) }})
}

// Path is where a file of this module is, by its name from the root of the module.
func Path(t testing.TB, name string) string {
	t.Helper()
	folder, err := os.Getwd()
	for ; err == nil && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return filepath.Join(folder, name)
		}
	}
	t.Fatalf("no folder above has a go.mod, %v", err)
	return ""
}

// ReadFile is the text of a file of this module.
func ReadFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
