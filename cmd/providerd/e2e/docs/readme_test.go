package docs_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// createShown creates the provider of the README over a SQLite database in dir, and returns the response.
func createShown(t *testing.T, dir string) (response string) {
	t.Helper()
	server := providerdtest.Serve(t, dir)
	for _, commands := range providerdtest.CodeBlocks(providerdtest.ReadFile(t, "README.md"), "sh") {
		if strings.HasPrefix(commands, "curl ") {
			response = providerdtest.RunShell(t, dir, strings.ReplaceAll(commands, "http://127.0.0.1:8080", server.URL))
		}
	}
	server.Stop(t)
	return response
}

// TestReadmeWorks runs the README's request, and compares the response with the one that the README shows.
func TestReadmeWorks(t *testing.T) {
	t.Parallel()
	dir, shown, response := t.TempDir(), map[string]any{}, map[string]any{}
	example := providerdtest.CodeBlocks(providerdtest.ReadFile(t, "README.md"), "json")[0]
	processtest.Must(t, json.Unmarshal([]byte(example), &shown))
	processtest.Must(t, json.Unmarshal([]byte(createShown(t, dir)), &response))
	for _, random := range []string{"client_id", "client_secret"} {
		if response[random] == "" {
			t.Errorf("%s is empty", random)
		}
		shown[random] = response[random]
	}
	if !maps.EqualFunc(shown, response, reflect.DeepEqual) {
		t.Errorf("the response is %v, the README shows %v", response, shown)
	}
	if pks := providerdtest.StoredPKs(t, dir); len(pks) != 1 {
		t.Errorf("the README stores %v, want 1 provider", pks)
	}
}

// runProgram compiles a Go program in this module, runs it in a directory with additional environment variables, and
// returns its output.
func runProgram(t *testing.T, dir, program string, environment ...string) string {
	t.Helper()
	source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	processtest.Must(t, os.WriteFile(source, []byte(program), 0o600))
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
	processtest.Must(t, json.Unmarshal([]byte(text), &contract))
	var all []sample
	for _, path := range contract.Paths {
		all = append(all, path.Post.Samples...)
	}
	return all
}
