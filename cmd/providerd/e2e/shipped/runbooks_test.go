package shipped_test

import (
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// runbook is the page of the manual with a section for each alert and a list of all problem types.
const runbook = "runbook.md"

func matches(t *testing.T, pattern string) (found []string) {
	t.Helper()
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(readRunbook(t), -1) {
		found = append(found, match[1])
	}
	return found
}

func readRunbook(t *testing.T) string {
	t.Helper()
	return providerdtest.ReadFile(t, providerdtest.ManualDir+runbook)
}

func TestEachAlertHasRunbook(t *testing.T) {
	t.Parallel()
	var want []string
	rules, _ := readDeployed(t)
	for _, rule := range rules {
		want = append(want, rule.Alert)
		wantURL := "{{ $externalLabels.providerd_manual }}/" + runbook + "#" + strings.ToLower(rule.Alert)
		processtest.Equal(t, rule.Annotations.RunbookURL, wantURL, "runbook_url of %s", rule.Alert)
	}
	got := matches(t, `(?m)^## (Providerd.+)$`)
	slices.Sort(want)
	slices.Sort(got)
	processtest.Equal(t, got, want, "sections of the runbook, and those that the alerts need")
}

// TestOpsListenerServesManual follows the links of the alerts and of all pages, and turns the pages.
func TestOpsListenerServesManual(t *testing.T) {
	t.Parallel()
	_, ops := providerdtest.ServeWithOps(t, t.TempDir())
	links, texts := []string{"/manual/"}, map[string]string{}
	rules, _ := readDeployed(t)
	for _, rule := range rules {
		links = append(links, "/manual/"+path.Base(rule.Annotations.RunbookURL))
	}
	for i := 0; i < len(links); i++ {
		page, anchor, _ := strings.Cut(links[i], "#")
		if _, isRead := texts[page]; !isRead {
			texts[page] = readManual(t, ops, page)
			for _, match := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(texts[page], -1) {
				target := processtest.Try((&url.URL{Path: page}).Parse(match[1])).Must(t)
				if target.Scheme == "" {
					links = append(links, target.String())
				}
			}
		}
		processtest.Expect(t, anchor == "" || strings.Contains(texts[page], `id="`+anchor+`"`), "%s does not exist", links[i])
	}
	processtest.Expect(t, texts["/openapi.yaml"] != "" && len(links) >= 200, "followed only %d links", len(links))
	pages := processtest.Try(filepath.Glob(providerdtest.Path(t, providerdtest.ManualDir) + "/*.md")).Must(t)
	turned := 0
	for page := []string{"", ""}; page != nil; turned++ {
		page = regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(texts["/manual/"+page[1]])
	}
	processtest.Equal(t, turned, len(pages), "pages turned")
	for name, want := range map[string]int{"/manual/missing.md": http.StatusNotFound, "/manual/../metrics": http.StatusOK, "/": http.StatusOK} {
		status, _ := providerdtest.Get(t, ops+name)
		processtest.Expect(t, status == want, "%s returns %d, want %d", name, status, want)
	}
}

// readManual returns a page, or a file, which is compared with the repository's.
func readManual(t *testing.T, ops, name string) string {
	status, text := providerdtest.Get(t, ops+name)
	isWhole := strings.HasPrefix(name, "/pages.") || name == "/openapi.yaml"
	if path.Ext(name) == ".md" || name == "/manual/" {
		isWhole = strings.Contains(text, "</html>")
	} else if !isWhole {
		isWhole = text == providerdtest.ReadFile(t, "cmd/providerd"+name)
	}
	processtest.Expect(t, status == http.StatusOK && isWhole, "%s returns %d: %s", name, status, text)
	return text
}

func TestEachProblemHasRunbook(t *testing.T) {
	t.Parallel()
	_, ops := providerdtest.ServeWithOps(t, t.TempDir())
	var types []string
	for series := range providerdtest.Scrape(t, ops) {
		if match := regexp.MustCompile(`^providerd_problems_total\{type="(.+)"\}$`).FindStringSubmatch(series); match != nil {
			types = append(types, match[1])
		}
	}
	_, problems, _ := strings.Cut(readRunbook(t), "\n## Problems\n")
	problems, _, _ = strings.Cut(problems, "\n## ")
	var got []string
	for _, item := range regexp.MustCompile("(?m)^- [`a-z, -]+: ").FindAllString(problems, -1) {
		got = append(got, strings.Split(strings.Trim(item, "-`: "), "`, `")...)
	}
	slices.Sort(types)
	slices.Sort(got)
	processtest.Equal(t, got, types, "problem types in the runbook")
	contract := providerdtest.ReadFile(t, "openapi.yaml")
	for _, match := range regexp.MustCompile(`type: /problems/(\S+)`).FindAllStringSubmatch(contract, -1) {
		processtest.Expect(t, slices.Contains(types, match[1]), "no metric counts the problem type %s", match[1])
	}
}

// TestRunbooksFindLogMessages checks that the program has each message that a runbook searches the log for, or explains
// in an item of a list that begins with it.
func TestRunbooksFindLogMessages(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, dir := range []string{"cmd/providerd/command", "cmd/providerd/command/*", "cmd/providerd/serve", "store", "store/*", "store/*/*"} {
		files := processtest.Try(filepath.Glob(providerdtest.Path(t, dir) + "/*.go")).Must(t)
		for _, file := range files {
			source := processtest.Try(os.ReadFile(file)).Must(t)
			sources.Write(source)
		}
	}
	expect := func(before, message string) {
		processtest.Expect(t, regexp.MustCompile(before+`"[^"\n]*`+message).MatchString(sources.String()),
			"the runbook has the message %q, which the program does not print", message)
	}
	searched := matches(t, `--grep '?([A-Za-z ]+)'?\n`)
	for _, message := range searched {
		expect(`\.(Info|Warn|Error)\(`, message)
	}
	var explained []string
	for _, item := range matches(t, "(?m)^- ((?:`[^`]+`(?:, )?)+)[:(,]") {
		explained = append(explained, regexp.MustCompile("[^`, ]+(?: [^`, ]+)+").FindAllString(item, -1)...)
	}
	for _, message := range explained {
		expect("", message)
	}
	processtest.Expect(t, len(searched) == 3 && len(explained) >= 15,
		"the runbook searches for %d messages, want 3, and explains %d, want at least 15", len(searched), len(explained))
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
du() { command du --human-readable --summarize data; }
`

// TestRunbookCommands runs the commands of the runbooks beside a server that has accepted and refused a create.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	for _, page := range []string{runbook, "monitoring.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			server, ops := providerdtest.ServeWithOps(t, t.TempDir())
			server.Create(t, http.DefaultClient)
			server.ExpectPost(t, http.DefaultClient, http.StatusBadRequest, providerdtest.OAuth2Path, "{}", "")
			shown := strings.NewReplacer(
				"http://127.0.0.1:9464", ops, "http://127.0.0.1:8080", server.URL,
				"sqlite:/var/lib/providerd/", "sqlite:data/",
			)
			for _, commands := range providerdtest.CodeBlocks(providerdtest.ReadFile(t, "cmd/providerd/manual/"+page), "sh") {
				if !strings.HasPrefix(commands, "providerd serve") {
					providerdtest.RunShell(t, server.Dir, standIns+shown.Replace(commands))
				}
			}
		})
	}
}
