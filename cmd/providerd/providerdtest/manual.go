package providerdtest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Example is a block of commands of the manual. RunBy is the test that runs it.
type Example struct{ Commands, RunBy string }

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
	pattern := regexp.MustCompile("(?ms)(?:^<!-- run by (\\w+) -->\n)?^```sh\n(.*?)^```$")
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, Example{Commands: match[2], RunBy: cmp.Or(match[1], byDefault)})
	}
	return found
}

// Examples returns the commands of a page of the manual that the running test runs, of which there are count.
func Examples(t *testing.T, page string, count int) []string {
	t.Helper()
	var found []string
	for _, example := range AllExamples(t, page) {
		if example.RunBy == t.Name() {
			found = append(found, example.Commands)
		}
	}
	if len(found) != count {
		t.Fatalf("%s has %d examples run by %s, want %d", page, len(found), t.Name(), count)
	}
	return found
}

// CodeBlocks returns the code blocks of a language in a text.
func CodeBlocks(text, language string) []string {
	var found []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// ShellCommand returns a shell that runs commands in dir, with providerd on the path.
func ShellCommand(t *testing.T, dir, commands string) *exec.Cmd {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "providerd")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return shell
}

// RunShell runs commands in dir, with providerd on the path. They must succeed.
func RunShell(t *testing.T, dir, commands string) {
	t.Helper()
	if output, err := ShellCommand(t, dir, commands).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", commands, err, output)
	}
}
