package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// writeChain writes a certificate and its key under the names that the manual uses.
func writeChain(t *testing.T, dir string) {
	t.Helper()
	providerdtest.WriteCertificate(t, dir, 1)
	processtest.Must(t, os.Rename(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "chain.pem")))
}

// firstPage is what a reader reads first, seen from the manual.
const firstPage = "../../../README.md"

// TestManual follows the README, and then the pages of the manual in the order of their links, as a reader would: in one
// directory, with one database and one server. A block that starts a server replaces that server. What a page shows
// after a block must be printed by it. No page may harm what an earlier one needs. A block that another test runs must
// name a test that exists.
func TestManual(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	r := reader{dir: t.TempDir()}
	writeChain(t, r.dir)
	processtest.Must(t, os.Mkdir(filepath.Join(r.dir, "bin"), 0o700))
	processtest.Must(t, os.Symlink(os.Args[0], filepath.Join(r.dir, "bin", "providerd")))
	defer func() { r.server.Stop(t) }()
	for _, page := range append([]string{firstPage}, pages(t)...) {
		r.exports = ""
		r.save(t, page)
		for _, example := range providerdtest.AllExamples(t, page) {
			switch {
			case example.RunBy == "TestManual":
				t.Log(page)
				r.follow(t, example)
			case !tests[example.RunBy]:
				t.Errorf("%s: %s does not exist; it should run: %s", page, example.RunBy, example.Commands)
			}
		}
		r.checkUnharmed(t, page)
	}
}

// checkUnharmed fails t if a page has renewed or revoked the token of the README, or created a provider twice.
func (r *reader) checkUnharmed(t *testing.T, page string) {
	t.Helper()
	tokens := providerdtest.RunCommand(t, r.dir, "token", "list")
	initial := regexp.MustCompile(`(?m)^\d+ +\S+ +initial .*$`).FindAllString(tokens, -1)
	if len(initial) != 1 || !strings.HasSuffix(initial[0], " active") {
		t.Errorf("after %s, the tokens of the first start are %q", page, initial)
	}
	names := map[string]bool{}
	for _, record := range providerdtest.Stored(t, r.dir) {
		if names[record.Name] {
			t.Errorf("after %s, %s is stored twice", page, record.Name)
		}
		names[record.Name] = true
	}
}

// pages returns the file names of the manual, in the order in which its first page links to them.
func pages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(providerdtest.Path(t, providerdtest.ManualDir+"*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the manual has %d pages, %v", len(files), err)
	}
	found := []string{"README.md"}
	for _, link := range links(t, providerdtest.ManualDir+"README.md") {
		if page, _, _ := strings.Cut(link, "#"); !strings.HasPrefix(page, "..") && !slices.Contains(found, page) {
			found = append(found, page)
		}
	}
	for _, file := range files {
		if !slices.Contains(found, filepath.Base(file)) {
			t.Errorf("the manual's first page does not link to %s", filepath.Base(file))
		}
	}
	return found
}

// testNames returns the names of all tests in this suite and its neighbors.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../*/*_test.go")
	processtest.Must(t, err)
	found := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		processtest.Must(t, err)
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
			found[string(match[1])] = true
		}
	}
	return found
}

// reader follows the pages in a directory.
type reader struct {
	dir string
	// exports are the lines so far, of one page, that export variables; they apply to later blocks.
	exports string
	server  *providerdtest.Server
}

// follow runs the commands of a block.
func (r *reader) follow(t *testing.T, example providerdtest.Example) {
	t.Helper()
	commands := r.exports + example.Commands
	r.exports = strings.Join(regexp.MustCompile(`(?m)^export .*\n`).FindAllString(commands, -1), "")
	starts := regexp.MustCompile(`(?m)^make run$|^(\w+=\S+ )*providerd serve\b`)
	if starts.MatchString(commands) {
		r.serve(t, starts.ReplaceAllString(commands, "exec env ${1}providerd serve --listen 127.0.0.1:0"))
		return
	}
	shown := regexp.MustCompile(`https?://127\.0\.0\.1:8080`)
	example.CheckOutput(t, providerdtest.RunShell(t, r.dir, shown.ReplaceAllLiteralString(commands, r.server.URL)))
}

// serve stops the server, if any, and starts another one on a free port.
func (r *reader) serve(t *testing.T, commands string) {
	t.Helper()
	if r.server != nil {
		r.server.Stop(t)
	}
	commands = regexp.MustCompile(`(--listen 127\.0\.0\.1:0.*) --listen \S+`).ReplaceAllString(commands, "$1")
	commands = regexp.MustCompile(`--ops-listen \S+`).ReplaceAllString(commands, "--ops-listen 127.0.0.1:0")
	r.server = providerdtest.MustStart(t, providerdtest.ShellCommand(t, r.dir, commands))
}

// save writes the blocks that follow "save this as `NAME`:" in a page.
func (r *reader) save(t *testing.T, page string) {
	t.Helper()
	text := providerdtest.ReadFile(t, providerdtest.ManualDir+page)
	saved := regexp.MustCompile("(?ms)^[^\n]*[Ss]ave this as `([^`\n]+)`:\n\n```\\w+\n(.*?)^```$")
	for _, match := range saved.FindAllStringSubmatch(text, -1) {
		path := filepath.Join(r.dir, match[1])
		processtest.Must(t, os.WriteFile(path, []byte(match[2]), 0o600))
	}
}
