package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// writeChain writes a certificate and its key under the names that the manual uses.
func writeChain(t *testing.T, dir string) {
	t.Helper()
	providerdtest.WriteCertificate(t, dir, 1)
	if err := os.Rename(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "chain.pem")); err != nil {
		t.Fatal(err)
	}
}

// TestManual runs the commands of each page in order, in one directory per page, beside a running server. A block that
// starts a server replaces that server. A block that another test runs must name a test that exists.
func TestManual(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			r := reader{dir: t.TempDir(), page: page}
			if page == "tls.md" {
				writeChain(t, r.dir)
			}
			defer r.stop(t)
			for _, example := range providerdtest.AllExamples(t, page) {
				switch {
				case example.RunBy == "TestManual":
					r.follow(t, example.Commands)
				case !tests[example.RunBy]:
					t.Errorf("%s does not exist; it should run: %s", example.RunBy, example.Commands)
				}
			}
		})
	}
}

// pages returns the file names of the manual.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(providerdtest.Path(t, providerdtest.ManualDir+"*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("the manual has %d pages, %v", len(found), err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

// testNames returns the names of all tests in the suites beside this one.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
			found[string(match[1])] = true
		}
	}
	return found
}

// reader follows a page.
type reader struct {
	dir, page string
	// exports are the lines so far that export variables; they apply to later blocks.
	exports string
	isSaved bool
	server  *providerdtest.Server
}

// follow runs the commands of a block. Before the first one, it saves the files that the page tells its reader to save.
func (r *reader) follow(t *testing.T, commands string) {
	t.Helper()
	if !r.isSaved {
		r.save(t)
		r.isSaved = true
	}
	commands = r.exports + commands
	r.exports = strings.Join(regexp.MustCompile(`(?m)^export .*\n`).FindAllString(commands, -1), "")
	if starts := regexp.MustCompile(`(?m)^(\w+=\S+ )*providerd serve\b`); starts.MatchString(commands) {
		r.serve(t, starts.ReplaceAllString(commands, "exec env ${1}providerd serve --listen 127.0.0.1:0"))
		return
	}
	if r.server == nil {
		r.server = providerdtest.Serve(t, r.dir)
	}
	shown := regexp.MustCompile(`https?://127\.0\.0\.1:8080`)
	providerdtest.RunShell(t, r.dir, shown.ReplaceAllLiteralString(commands, r.server.URL))
}

// stop stops the server, if any.
func (r *reader) stop(t *testing.T) {
	t.Helper()
	if r.server != nil {
		r.server.Stop(t)
	}
}

// serve stops the server, if any, and starts another one on a free port.
func (r *reader) serve(t *testing.T, commands string) {
	t.Helper()
	r.stop(t)
	commands = regexp.MustCompile(`(--listen 127\.0\.0\.1:0.*) --listen \S+`).ReplaceAllString(commands, "$1")
	commands = regexp.MustCompile(`--ops-listen \S+`).ReplaceAllString(commands, "--ops-listen 127.0.0.1:0")
	r.server = providerdtest.MustStart(t, providerdtest.ShellCommand(t, r.dir, commands))
}

// save writes the blocks that follow "save this as `NAME`:".
func (r *reader) save(t *testing.T) {
	t.Helper()
	text := providerdtest.ReadFile(t, providerdtest.ManualDir+r.page)
	saved := regexp.MustCompile("(?ms)^[^\n]*[Ss]ave this as `([^`\n]+)`:\n\n```\\w+\n(.*?)^```$")
	for _, match := range saved.FindAllStringSubmatch(text, -1) {
		path := filepath.Join(r.dir, match[1])
		if err := os.WriteFile(path, []byte(match[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManualIsShort limits the size of pages, and their blocks to languages that a test or a code host understands.
func TestManualIsShort(t *testing.T) {
	t.Parallel()
	const maxLines, maxLength = 150, 120
	for _, page := range pages(t) {
		lines := strings.Split(strings.TrimSuffix(providerdtest.ReadFile(t, providerdtest.ManualDir+page), "\n"), "\n")
		if len(lines) > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed", page, len(lines), maxLines)
		}
		isInBlock := false
		for i, line := range lines {
			if language, isFence := strings.CutPrefix(line, "```"); isFence {
				isInBlock = !isInBlock
				if isInBlock != slices.Contains([]string{"sh", "yaml", "json", "ini", "mermaid"}, language) {
					t.Errorf("%s:%d has a block in %q", page, i+1, language)
				}
			}
			// A row of a table cannot be broken, and figures are written by the program that measures them.
			isFigure := i > 1 && strings.HasSuffix(lines[i-2], " writes them -->")
			if len(line) > maxLength && !strings.HasPrefix(line, "|") && !isFigure {
				t.Errorf("%s:%d has %d characters, at most %d are allowed", page, i+1, len(line), maxLength)
			}
		}
	}
}
