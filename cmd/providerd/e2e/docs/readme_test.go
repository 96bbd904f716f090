package docs_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestReadmeListsEveryDependency compares the table of .ci/README.md with the modules that go.mod requires directly.
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
		t.Errorf("the README lists %v, go.mod has %v", listed, direct)
	}
}

// blocks returns the code blocks of a language in the README, with the URL of a server instead of the default one.
func blocks(t *testing.T, language, url string) []string {
	t.Helper()
	readme := providerdtest.ReadFile(t, "README.md")
	return providerdtest.CodeBlocks(strings.ReplaceAll(readme, "http://127.0.0.1:8080", url), language)
}

// TestReadmeWorks runs the README's commands in their order and its program, beside a running server.
func TestReadmeWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	created := 0
	for _, commands := range blocks(t, "sh", server.URL) {
		switch {
		case strings.HasPrefix(commands, "make "):
			// "make run" has started the server; "make test" runs this test.
		case strings.HasPrefix(commands, "curl "):
			output, err := providerdtest.ShellCommand(t, dir, commands).Output()
			if err != nil || !strings.HasPrefix(string(output), "HTTP/1.1 201 ") {
				t.Errorf("%s: %v: %s", commands, err, output)
			}
			created++
		case strings.Contains(commands, "providerd apply"):
			created += applyExample(t, dir, commands)
		default:
			providerdtest.RunShell(t, dir, commands)
		}
	}
	for _, program := range blocks(t, "go", server.URL) {
		for range 2 {
			output := runProgram(t, dir, program, "PROVIDERD_TOKEN="+providerdtest.Token(t, dir))
			if strings.Trim(strings.Fields(output)[0], "0123456789") != "" {
				t.Errorf("the program prints %q, want a pk", output)
			}
		}
		created++
	}
	server.Stop(t)
	if pks := providerdtest.StoredPKs(t, dir); created != 5 || len(pks) != created {
		t.Errorf("%d examples stored %v, want 5 providers", created, pks)
	}
}

// applyExample applies the README's file, twice, and returns how many providers that creates.
func applyExample(t *testing.T, dir, commands string) int {
	t.Helper()
	files := blocks(t, "yaml", "")
	if len(files) != 1 {
		t.Fatalf("found %d files, want 1", len(files))
	}
	program := filepath.Join(dir, "bin", "providerd")
	err := errors.Join(
		os.Mkdir(filepath.Dir(program), 0o700), os.Symlink(os.Args[0], program),
		os.WriteFile(filepath.Join(dir, ".scratch", "providers.yaml"), []byte(files[0]), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	commands = "export PROVIDERD_TOKEN=$(cat data/initial-token)\n" + commands
	for _, want := range []string{"2 entries: 2 created, ", "2 entries: 0 created, 2 unchanged, "} {
		output, err := providerdtest.ShellCommand(t, dir, commands).CombinedOutput()
		if err != nil || !strings.Contains(string(output), want) || strings.Contains(string(output), "advice") {
			t.Errorf("%s: %v: %s", commands, err, output)
		}
	}
	return 2
}

// runProgram compiles a Go program in this module, runs it in a directory with additional environment variables, and
// returns its output.
func runProgram(t *testing.T, dir, program string, environment ...string) string {
	t.Helper()
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	providerdtest.Run(t, "go", "build", "-o", binary, source)
	command := exec.CommandContext(t.Context(), binary)
	command.Dir, command.Env = dir, append(os.Environ(), environment...)
	return processtest.Run(t, command)
}

// TestSamplesWork runs the samples of the reference page with a token in PROVIDERD_TOKEN. Those in TypeScript run in
// gen/typescript.
func TestSamplesWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	environment := "PROVIDERD_TOKEN=" + providerdtest.Token(t, dir)
	created := 0
	for _, sample := range samples(t, server.URL) {
		source := strings.ReplaceAll(sample.Source, "http://127.0.0.1:8080", server.URL)
		switch sample.Label {
		case "curl":
			shell := providerdtest.ShellCommand(t, dir, source)
			shell.Env = append(shell.Env, environment)
			if output, err := shell.Output(); err != nil || !strings.HasPrefix(string(output), "HTTP/1.1 201 ") {
				t.Errorf("%s: %v: %s", source, err, output)
			}
			created++
		case "Go":
			if output := runProgram(t, dir, source, environment); strings.Trim(output, "0123456789") != "\n" {
				t.Errorf("%s: prints %q, want a pk", source, output)
			}
			created++
		}
	}
	server.Stop(t)
	if pks := providerdtest.StoredPKs(t, dir); created != 4 || len(pks) != created {
		t.Errorf("%d samples in curl and Go stored %v, want 4 providers", created, pks)
	}
}

type sample struct{ Label, Source string }

// samples returns the samples of all operations in the contract that a server publishes.
func samples(t *testing.T, url string) []sample {
	t.Helper()
	_, text := providerdtest.Get(t, url+"/openapi.json")
	var contract struct {
		Paths map[string]struct {
			Post struct {
				Samples []sample `json:"x-codeSamples"`
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &contract); err != nil {
		t.Fatal(err)
	}
	var all []sample
	for _, path := range contract.Paths {
		all = append(all, path.Post.Samples...)
	}
	return all
}
