package docs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestReadmeListsEveryDependency compares the README's table with the modules that the code imports itself.
func TestReadmeListsEveryDependency(t *testing.T) {
	t.Parallel()
	module := providerdtest.ReadFile(t, "go.mod")
	readme := providerdtest.ReadFile(t, ".ci/README.md")
	var direct, listed []string
	for _, match := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(module, -1) {
		direct = append(direct, match[1])
	}
	_, table, _ := strings.Cut(readme, "\n## Dependencies\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, match := range regexp.MustCompile("`(\\S+\\.\\S+/\\S+)`").FindAllStringSubmatch(table, -1) {
		listed = append(listed, match[1])
	}
	if len(direct) == 0 || !slices.Equal(direct, listed) {
		t.Errorf("the README lists %v, go.mod %v", listed, direct)
	}
}

// blocks returns the code blocks of a language in the README, with the server's URL in place of the default one.
func blocks(t *testing.T, language, url string) []string {
	t.Helper()
	readme := providerdtest.ReadFile(t, "README.md")
	return providerdtest.CodeBlocks(strings.ReplaceAll(readme, "http://127.0.0.1:8080", url), language)
}

// Whoever follows the README saves files only where git ignores them.
func TestReadmeLeavesNoFiles(t *testing.T) {
	t.Parallel()
	readme, ignored := providerdtest.ReadFile(t, "README.md"), providerdtest.ReadFile(t, ".gitignore")
	saved := regexp.MustCompile("(?:saved as `|such as this `|run |-f |>)([\\w./]+\\.(?:go|yaml|json))\\b").
		FindAllStringSubmatch(readme, -1)
	if len(saved) != 5 || !strings.Contains(ignored, "\n/.scratch/\n") {
		t.Errorf("%q are saved, and git ignores %s", saved, ignored)
	}
	for _, file := range saved {
		if !strings.HasPrefix(file[1], ".scratch/") {
			t.Errorf("%s is left in the clone", file[1])
		}
	}
}

// TestReadmeWorks pastes the README's commands and its program, in its folder, beside a running server.
func TestReadmeWorks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := providerdtest.Serve(t, folder)
	created := 0
	for _, command := range blocks(t, "sh", server.URL) {
		if !strings.HasPrefix(command, "curl ") {
			continue
		}
		output, err := providerdtest.ShellCommand(t, folder, command).Output()
		if err != nil || !strings.HasPrefix(string(output), "HTTP/1.1 201 ") {
			t.Errorf("%s: %v: %s", command, err, output)
		}
		created++
	}
	for _, program := range blocks(t, "go", server.URL) {
		for range 2 {
			if output := runProgram(t, folder, program); !strings.HasPrefix(output, "3 ") {
				t.Errorf("the program prints %q, want pk 3", output)
			}
		}
		created++
	}
	if created != 3 {
		t.Errorf("%d examples were found, want 3", created)
	}
	created += applyExample(t, folder, server.URL)
	server.MustStop(t)
	if pks := providerdtest.StoredPKs(t, folder); len(pks) != created {
		t.Errorf("stored are %v, want %d records", pks, created)
	}
}

// applyExample applies the README's file, twice, and returns how many providers that creates.
func applyExample(t *testing.T, folder, url string) int {
	t.Helper()
	files := blocks(t, "yaml", url)
	if len(files) != 1 {
		t.Fatalf("%d files were found, want 1", len(files))
	}
	program := filepath.Join(folder, "bin", "providerd")
	err := errors.Join(
		os.Mkdir(filepath.Dir(program), 0o700), os.Symlink(os.Args[0], program), os.Mkdir(filepath.Join(folder, ".scratch"), 0o700),
		os.WriteFile(filepath.Join(folder, ".scratch", "providers.yaml"), []byte(files[0]), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range blocks(t, "sh", url) {
		if !strings.Contains(command, "providerd apply") {
			continue
		}
		for _, says := range []string{"3 entries: 3 created, ", "3 entries: 0 created, 3 unchanged, "} {
			output, err := providerdtest.ShellCommand(t, folder, command).CombinedOutput()
			if err != nil || !strings.Contains(string(output), says) || strings.Contains(string(output), "advice") {
				t.Errorf("%s: %v: %s", command, err, output)
			}
		}
	}
	return 3
}

// runProgram compiles a Go program within this module, runs it in a folder, with more environment than that of the
// test, and returns what it prints.
func runProgram(t *testing.T, folder, program string, environment ...string) string {
	t.Helper()
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, output)
	}
	command := exec.CommandContext(t.Context(), binary)
	command.Dir, command.Env = folder, append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("run: %v: %s", err, output)
	}
	return string(output)
}
