package providerdtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// SectionOf returns a section of the README for operators.
func SectionOf(t *testing.T, heading string) string {
	t.Helper()
	readme := File(t, "cmd/providerd/README.md")
	_, section, _ := strings.Cut(readme, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// ExamplesOf returns the commands of a section of the README for operators, of which there are so many.
func ExamplesOf(t *testing.T, heading string, count int) []string {
	t.Helper()
	found := BlocksOf(SectionOf(t, heading), "sh")
	if len(found) != count {
		t.Fatalf("%d examples were found, want %d", len(found), count)
	}
	return found
}

// BlocksOf returns the code blocks of a language in a text.
func BlocksOf(text, language string) []string {
	var found []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// BlockWith returns the commands of a README of the module that have these words.
func BlockWith(t *testing.T, readme, words string) string {
	t.Helper()
	for _, commands := range BlocksOf(File(t, readme), "sh") {
		if strings.Contains(commands, words) {
			return commands
		}
	}
	t.Fatalf("%s has no commands with %q", readme, words)
	return ""
}

// Pasting is a shell that is to run commands in a folder, where providerd is on the path.
func Pasting(t *testing.T, folder, commands string) *exec.Cmd {
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

// Paste runs commands in a folder, where providerd is on the path. They must end well.
func Paste(t *testing.T, folder, commands string) {
	t.Helper()
	if output, err := Pasting(t, folder, commands).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", commands, err, output)
	}
}
