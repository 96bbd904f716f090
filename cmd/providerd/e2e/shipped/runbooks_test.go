package shipped_test

import (
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// problemPage is the page of the manual with a section for each problem type.
const problemPage = "problems.md"

// alertPages returns the pages of the manual with a section for each alert.
func alertPages() []string {
	return []string{"troubleshooting.md", "troubleshooting-resources.md", "troubleshooting-expiry.md"}
}

// headings returns the headings of the sections of a page of the manual.
func headings(t *testing.T, page string) (found []string) {
	t.Helper()
	text := providerdtest.ReadFile(t, "cmd/providerd/manual/"+page)
	for _, match := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// TestEachAlertHasRunbook checks that each alert links to the section with its name, and that no section is left over.
func TestEachAlertHasRunbook(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, rule := range readRules(t) {
		page, anchor, _ := strings.Cut(path.Base(rule.Annotations.RunbookURL), "#")
		want = append(want, page+" "+rule.Alert)
		wantURL := "{{ $externalLabels.providerd_manual }}/" + page + "#" + strings.ToLower(rule.Alert)
		if rule.Annotations.RunbookURL != wantURL || anchor == "" {
			t.Errorf("runbook_url of %s is %q, want %q", rule.Alert, rule.Annotations.RunbookURL, wantURL)
		}
	}
	for _, page := range alertPages() {
		for _, heading := range headings(t, page) {
			if heading != "Before you start" {
				got = append(got, page+" "+heading)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the manual has the sections %q, the alerts need %q", got, want)
	}
}

// TestEachProblemHasRunbook checks that each problem type of a server has a section, and that no section is left over.
func TestEachProblemHasRunbook(t *testing.T) {
	t.Parallel()
	_, ops := providerdtest.ServeWithOps(t, t.TempDir())
	var types []string
	for series := range providerdtest.Scrape(t, ops) {
		if match := regexp.MustCompile(`^providerd_problems_total\{type="(.+)"\}$`).FindStringSubmatch(series); match != nil {
			types = append(types, match[1])
		}
	}
	got := headings(t, problemPage)
	slices.Sort(types)
	slices.Sort(got)
	if !slices.Equal(got, types) {
		t.Errorf("%s has the sections %q, the problem types are %q", problemPage, got, types)
	}
	contract := providerdtest.ReadFile(t, "openapi.yaml")
	for _, match := range regexp.MustCompile(`type: /problems/(\S+)`).FindAllStringSubmatch(contract, -1) {
		if !slices.Contains(types, match[1]) {
			t.Errorf("openapi.yaml has the problem type %s, which no metric counts", match[1])
		}
	}
}

// TestRunbooksFindLogMessages checks that the program logs each message that a runbook searches the log for.
func TestRunbooksFindLogMessages(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, dir := range []string{"cmd/providerd/serve", "store/sqlite"} {
		files, err := filepath.Glob(providerdtest.Path(t, dir) + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(source)
		}
	}
	searched := 0
	for _, page := range alertPages() {
		text := providerdtest.ReadFile(t, "cmd/providerd/manual/"+page)
		for _, match := range regexp.MustCompile(`--grep '?([A-Za-z ]+)'?\n`).FindAllStringSubmatch(text, -1) {
			searched++
			logged := regexp.MustCompile(`\.(Info|Warn|Error)\("[^"]*` + match[1])
			if !logged.MatchString(sources.String()) {
				t.Errorf("%s searches for %q, which the program does not log", page, match[1])
			}
		}
	}
	if searched != 3 {
		t.Errorf("the runbooks search for %d messages, want 3", searched)
	}
}

// standIns are shell functions in place of programs that need systemd, PostgreSQL or installed files. They check the
// options that they are called with.
const standIns = `
set -o pipefail
export PROVIDERD_DATABASE=sqlite:data/providerd.db
check() { getopt --name "$1" --options '' --longoptions "$2" -- "${@:3}" >/dev/null; }
journalctl() { check journalctl unit:,since:,grep:,output:,lines: "$@"; echo 'remote=192.0.2.1:1 caller=shop token_id=1'; }
systemctl() { check systemctl property: "$@"; }
psql() { check psql command: "$@"; }
fuser() { check fuser verbose "$@"; }
promtool() { [ "$*" = "check config prometheus.yaml" ]; }
cat() { [[ $1 == /proc/pressure/* ]] || command cat "$@"; }
df() { command df --human-readable /; }
`

// TestRunbookCommands runs the commands of the runbooks beside a server that has accepted and refused a create.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	for _, page := range append(alertPages(), problemPage, "doctor.md", "metrics.md") {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server, ops := providerdtest.ServeWithOps(t, dir)
			server.Create(t, http.DefaultClient)
			if _, _, err := server.Post(http.DefaultClient, providerdtest.OAuth2Path, "{}"); err != nil {
				t.Fatal(err)
			}
			shown := strings.NewReplacer(
				"http://127.0.0.1:9464", ops, "http://127.0.0.1:8080", server.URL,
				"sqlite:/var/lib/providerd/", "sqlite:data/",
			)
			text := providerdtest.ReadFile(t, "cmd/providerd/manual/"+page)
			for _, commands := range providerdtest.CodeBlocks(text, "sh") {
				if !strings.HasPrefix(commands, "providerd serve") {
					providerdtest.RunShell(t, dir, standIns+shown.Replace(commands))
				}
			}
		})
	}
}
