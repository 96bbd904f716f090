// Package providerdtest runs providerd as its clients and operators do: as a process, over HTTP and by its command
// line. It has what several suites of cmd/providerd/e2e share. Programs, waits and ports are in processtest.
//
// Start with Serve: it returns a Server, whose methods send requests and end it. RunCommand, Output and ExpectExit run
// other commands, which Command returns. Stored returns the records of a database, which a Journal compares with the
// responses that clients got. StartFleet starts replicas over one database. Each suite calls Main.
package providerdtest

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
func Main(m *testing.M) { MainAround(m, func(program func() int) int { return program() }) }

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
	return string(processtest.Try(os.ReadFile(Path(t, name))).Must(t))
}

// Example is a block of commands of the manual. RunBy is the test that runs it. Output is what the page says that it
// prints, if it says so.
type Example struct{ Commands, RunBy, Output string }

// ManualDir is the directory of the manual in this module.
const ManualDir = "cmd/providerd/manual/"

// AllExamples returns the examples of a page of the manual. They are run by TestManual, unless the page has a line
// "<!-- all commands run by TEST -->" or the line before the block is "<!-- run by TEST -->".
func AllExamples(t *testing.T, page string) []Example {
	t.Helper()
	var found []Example
	text, byDefault := ReadFile(t, ManualDir+page), "TestManual"
	if match := regexp.MustCompile(`(?m)^<!-- all commands run by (\w+) -->$`).FindStringSubmatch(text); match != nil {
		byDefault = match[1]
	}
	parts := regexp.MustCompile("(?ms)^## |(?:^<!-- run by (\\w+) -->\n)?^```(sh|text)\n(.*?)^```$")
	isShown := true
	for _, part := range parts.FindAllStringSubmatch(text, -1) {
		if part[2] == "sh" {
			found = append(found, Example{Commands: part[3], RunBy: cmp.Or(part[1], byDefault)})
		} else if !isShown {
			found[len(found)-1].Output = part[3]
		}
		isShown = part[2] != "sh"
	}
	return found
}

// CheckOutput checks that each line of the output that a page shows was printed, apart from times, random values and
// the width of columns.
func (e Example) CheckOutput(t *testing.T, printed string) {
	t.Helper()
	alike := func(text string) string {
		text = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z|\b[0-9A-Za-z]{26,}\b|pvd_\w+|-{3,}`).ReplaceAllString(text, "*")
		text = regexp.MustCompile(` +\n`).ReplaceAllString(text, "\n")
		return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
	}
	for line := range strings.Lines(alike(e.Output)) {
		processtest.Contains(t, alike(printed), line)
	}
}

// Examples returns the examples of a page of the manual that the running test runs, of which there are count.
func Examples(t *testing.T, page string, count int) []Example {
	t.Helper()
	found := slices.DeleteFunc(AllExamples(t, page), func(example Example) bool { return example.RunBy != t.Name() })
	processtest.Require(t, len(found) == count, "%s has %d examples run by %s, want %d", page, len(found), t.Name(), count)
	return found
}

// CodeBlocks returns the code blocks of a language in a Markdown document.
func CodeBlocks(text, language string) []string {
	var found []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}
