package providerdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

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
	pattern := regexp.MustCompile("(?ms)(?:^<!-- run by (\\w+) -->\n)?^```sh\n(.*?)^```$")
	blocks := pattern.FindAllStringSubmatchIndex(text, -1)
	for i, block := range blocks {
		end := len(text)
		if i+1 < len(blocks) {
			end = blocks[i+1][0]
		}
		section, _, _ := strings.Cut(text[block[1]:end], "\n## ")
		example := Example{Commands: text[block[4]:block[5]], RunBy: byDefault}
		if block[2] >= 0 {
			example.RunBy = text[block[2]:block[3]]
		}
		if outputs := CodeBlocks(section, "text"); len(outputs) > 0 {
			example.Output = outputs[0]
		}
		found = append(found, example)
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
		if !strings.Contains(alike(printed), line) {
			t.Errorf("%q is not in what is printed by %s: %s", line, e.Commands, printed)
		}
	}
}

// Examples returns the examples of a page of the manual that the running test runs, of which there are count.
func Examples(t *testing.T, page string, count int) []Example {
	t.Helper()
	found := slices.DeleteFunc(AllExamples(t, page), func(example Example) bool { return example.RunBy != t.Name() })
	if len(found) != count {
		t.Fatalf("%s has %d examples run by %s, want %d", page, len(found), t.Name(), count)
	}
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

// ShellCommand returns a shell that runs commands in dir, with providerd on the path.
func ShellCommand(t *testing.T, dir, commands string) *exec.Cmd {
	t.Helper()
	bin := t.TempDir()
	processtest.Must(t, os.Symlink(os.Args[0], filepath.Join(bin, "providerd")))
	shell := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return shell
}

// RunShell runs commands in dir, with providerd on the path, and returns their output and messages. They must succeed.
func RunShell(t *testing.T, dir, commands string) string {
	t.Helper()
	output, err := ShellCommand(t, dir, commands).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", commands, err, output)
	}
	return string(output)
}
