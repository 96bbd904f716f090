package docs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestSamplesWork runs the samples of the reference page with a token in TOKEN. Those in TypeScript run in
// gen/typescript.
func TestSamplesWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	environment := "TOKEN=" + providerdtest.Token(t, dir)
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
