package client_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// blockFrame makes a program of a block of the README.
const blockFrame = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
)

var _, _, _, _, _ = context.Background, errors.Is, log.Fatal, os.Exit, time.Hour
var _, err = uuid.Nil, error(nil)

func main() {
	%s
}
`

// The first block of the README is a program that prints what follows it; the other ones compile and run.
func TestBlocksOfTheREADMEAreRun(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	processtest.Must(t, err)
	baseURL, token := startServer(t)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(string(readme), -1)
	for i, block := range blocks {
		program := filepath.Join(t.TempDir(), "main.go")
		source := strings.ReplaceAll(block[1], "http://127.0.0.1:8080", baseURL)
		if i > 0 {
			source = fmt.Sprintf(blockFrame, source)
		}
		processtest.Must(t, os.WriteFile(program, []byte(source), 0o600))
		command := exec.CommandContext(t.Context(), "go", "run", program)
		command.Env = append(os.Environ(), "PROVIDERD_TOKEN="+token)
		output, err := command.CombinedOutput()
		if err != nil || i == 0 && !regexp.MustCompile(`^1 \w{40} \*{8}\n$`).Match(output) {
			t.Errorf("%s%v: %s", block[1], err, output)
		}
	}
	if !regexp.MustCompile("```text\n1 \\w{40} \\*{8}\n```").Match(readme) || len(blocks) < 3 {
		t.Error("the README lacks the output of its first block, or the other blocks")
	}
}

// The constants match the server's index of problems.
func TestProblemTypesMatchServer(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("problem_types.go")
	processtest.Must(t, err)
	baseURL, _ := startServer(t)
	response, err := http.Get(baseURL + "/problems/")
	processtest.Must(t, err)
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	processtest.Must(t, err)
	types := func(pattern string, text []byte) (found []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(match[1]))
		}
		slices.Sort(found)
		return found
	}
	declared, served := types(`"(/problems/[^"]+)"`, source), types(`href="(/problems/[^"]+)"`, page)
	if !slices.Equal(declared, served) {
		t.Errorf("the server has the problems %q, the SDK %q", served, declared)
	}
}
