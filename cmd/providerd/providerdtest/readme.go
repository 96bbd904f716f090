package providerdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ReadmeSection returns a section of the README for operators.
func ReadmeSection(t *testing.T, heading string) string {
	t.Helper()
	readme := ReadFile(t, "cmd/providerd/README.md")
	_, section, _ := strings.Cut(readme, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// ReadmeExamples returns the commands of a section of the README for operators, of which there are so many.
func ReadmeExamples(t *testing.T, heading string, count int) []string {
	t.Helper()
	found := CodeBlocks(ReadmeSection(t, heading), "sh")
	if len(found) != count {
		t.Fatalf("%d examples were found, want %d", len(found), count)
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

// FindCodeBlock returns the commands of a README of the module that have these words.
func FindCodeBlock(t *testing.T, readme, words string) string {
	t.Helper()
	for _, commands := range CodeBlocks(ReadFile(t, readme), "sh") {
		if strings.Contains(commands, words) {
			return commands
		}
	}
	t.Fatalf("%s has no commands with %q", readme, words)
	return ""
}

// ShellCommand is a shell that is to run commands in a folder, where providerd is on the path.
func ShellCommand(t *testing.T, folder, commands string) *exec.Cmd {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "providerd")); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	shell.Dir = folder
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return shell
}

// RunShell runs commands in a folder, where providerd is on the path. They must end well.
func RunShell(t *testing.T, folder, commands string) {
	t.Helper()
	if output, err := ShellCommand(t, folder, commands).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", commands, err, output)
	}
}
