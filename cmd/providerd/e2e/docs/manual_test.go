// Package docs_test follows the documents: it runs the commands and programs of the README and of the manual, follows
// links, and uses the reference page in a browser. Generated tables are tested beside what generates them.
//
// Start with this file, which reads the manual from its first page to its last.
package docs_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }

// TestManual follows the README, and then the pages of the manual in the order of their links, as a reader would: in one
// directory, with one database and one server. A block that starts a server replaces that server. What a page shows
// after a block must be printed by it. No page may harm what an earlier one needs. A block that another test runs must
// name a test that exists.
func TestManual(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	files := processtest.Try(filepath.Glob("../*/*_test.go")).Must(t)
	for _, file := range files {
		source := processtest.Try(os.ReadFile(file)).Must(t)
		tests.Write(source)
	}
	r := reader{dir: t.TempDir()}
	providerdtest.WriteCertificate(t, r.dir, 1)
	processtest.Must(t, os.Rename(filepath.Join(r.dir, "cert.pem"), filepath.Join(r.dir, "chain.pem")),
		os.Mkdir(filepath.Join(r.dir, "bin"), 0o700), os.Symlink(os.Args[0], filepath.Join(r.dir, "bin", "providerd")))
	defer func() { r.server.Stop(t) }()
	for _, page := range append([]string{"../../../README.md"}, pages(t)...) {
		r.exports = ""
		r.save(t, page)
		for _, example := range providerdtest.AllExamples(t, page) {
			switch {
			case example.RunBy == "TestManual":
				t.Log(page)
				r.follow(t, example)
			case !strings.Contains(tests.String(), "\nfunc "+example.RunBy+"("):
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
	processtest.Expect(t, len(initial) == 1 && strings.HasSuffix(initial[0], " active"),
		"after %s, the tokens of the first start are %q", page, initial)
	t.Logf("records after %s", page)
	providerdtest.CheckIncludes(t, providerdtest.Stored(t, r.dir), nil)
}

// pages returns the file names of the manual, in the order in which its first page links to them.
func pages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(providerdtest.Path(t, providerdtest.ManualDir+"*.md"))
	processtest.Require(t, err == nil && len(files) != 0, "the manual has %d pages, %v", len(files), err)
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

// TestManualBacksUp runs the commands beside a server, after it has stopped, and on what could be another machine.
func TestManualBacksUp(t *testing.T) {
	t.Parallel()
	examples := providerdtest.Examples(t, "backup.md", 4)
	dir, other := t.TempDir(), t.TempDir()
	providerdtest.Fill(t, dir, 3)
	server := providerdtest.Serve(t, dir)
	want := []int64{1, 2, 3}
	providerdtest.RunShell(t, dir, examples[0].Commands)
	processtest.Must(t, os.Mkdir(filepath.Join(dir, "backups"), 0o700))
	schedule := processtest.Try(processtest.Start(providerdtest.ShellCommand(t, dir, "exec "+examples[1].Commands))).Must(t)
	processtest.WaitUntil(t, "the program waits for the next backup", func() bool {
		return strings.Contains(schedule.Stderr.String(), "the next backup is due at ")
	})
	if err := schedule.Stop(syscall.SIGTERM); err != nil {
		t.Errorf("%v: %s", err, schedule.Stderr)
	}
	made, err := filepath.Glob(filepath.Join(dir, "backups", "*"))
	processtest.Expect(t, err == nil && len(made) == 1 && regexp.MustCompile(`/providerd-2\w+Z\.db$`).MatchString(made[0]),
		"made %v, %v", made, err)
	server.Stop(t)
	providerdtest.RunCommand(t, dir, "provider", "delete", "1", "2", "--yes")
	providerdtest.RunShell(t, dir, examples[2].Commands)
	processtest.Equal(t, providerdtest.StoredPKs(t, dir), want, "restored providers")
	for _, name := range []string{"backup.db", "keyset.copy.json"} {
		processtest.Must(t, os.Rename(filepath.Join(dir, name), filepath.Join(other, name)))
	}
	providerdtest.RunShell(t, other, examples[3].Commands)
	processtest.Equal(t, providerdtest.StoredPKs(t, other), want, "providers restored elsewhere")
	providerdtest.CheckFilled(t, other, len(want))
}

// TestManualRestoresOlderBackup replaces the master key beside a server, and then restores a backup that needs the old
// one.
func TestManualRestoresOlderBackup(t *testing.T) {
	t.Parallel()
	examples := providerdtest.Examples(t, "keys.md", 3)
	add, drop, restore := examples[0].Commands, examples[1].Commands, examples[2].Commands
	dir := t.TempDir()
	providerdtest.Fill(t, dir, 3)
	providerdtest.RunCommand(t, dir, "backup", "older.db")
	server := providerdtest.Serve(t, dir)
	for _, commands := range []string{add, drop} {
		providerdtest.RunShell(t, dir, commands)
		server.ExpectReadiness(t, "ready")
		server.Create(t, http.DefaultClient)
	}
	server.Stop(t)
	refused := providerdtest.Command(t.Context(), dir, "restore", "older.db", "--replace")
	providerdtest.ExpectExit(t, refused, providerdtest.ExitFailed, `lacks master key \d+`)
	processtest.Equal(t, len(providerdtest.StoredPKs(t, dir)), 5, "providers after a restore that was refused")
	providerdtest.RunShell(t, dir, restore)
	providerdtest.RunShell(t, dir, drop)
	providerdtest.CheckFilled(t, dir, 3)
}

// recordsPage is the page about the ways to get records.
const recordsPage = "records.md"

// TestManualFollowsRecords keeps a record that was created before the commands of the manual began, and one that is
// created while they run.
func TestManualFollowsRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	// A job of its own ends with all its programs.
	commands := "set -m\n(\n" + providerdtest.Examples(t, recordsPage, 1)[0].Commands + ") &\n" +
		"until grep --quiet '^}' record-2.json && ! test -e record-1.json; do sleep 0.1; done 2>/dev/null\nkill -- -$!\n"
	child := processtest.Try(processtest.Start(providerdtest.ShellCommand(t, dir, commands))).Must(t)
	for _, name := range []string{"record-1.json", "record-2.json"} {
		created := processtest.Try(server.CreateOnce(http.DefaultClient, name)).Must(t)
		var kept struct {
			PK     int64
			Secret string `json:"client_secret"`
		}
		processtest.WaitUntil(t, name+" is written", func() bool {
			text, err := os.ReadFile(filepath.Join(dir, name))
			return err == nil && json.Unmarshal(text, &kept) == nil
		})
		processtest.Expect(t, kept.PK == created.PK && kept.Secret == created.Secret,
			"%s has provider %d, want %d", name, kept.PK, created.PK)
	}
	providerdtest.RunCommand(t, dir, "provider", "delete", "1", "--yes")
	if err := child.Wait(); err != nil {
		t.Errorf("%v: %s", err, child.Stderr)
	}
}
