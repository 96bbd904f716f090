package shipped_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"

	"go.yaml.in/yaml/v4"
)

// rule is an alert of deploy/alerts.yaml.
type rule struct{ Alert, Expr string }

// ruleTests is the form of alerts_test.yaml.
type ruleTests struct {
	Tests []struct {
		AlertRuleTest []struct {
			Alertname string
			ExpAlerts []any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// dashboard is the form of deploy/dashboard.json.
type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		Targets []struct{ Expr string }
	}
}

// readOperate reads a file of the module in YAML, which JSON is as well.
func readOperate(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(providerdtest.ReadFile(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readOperate(t, "cmd/providerd/deploy/alerts.yaml", &file)
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// queries are the expressions of the panels and alerts, by what they are of.
func queries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, rule := range readRules(t) {
		found["alert "+rule.Alert] = rule.Expr
	}
	var board dashboard
	readOperate(t, "cmd/providerd/deploy/dashboard.json", &board)
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			found["panel "+panel.Title+": "+target.Expr] = target.Expr
		}
	}
	if len(found) < 30 {
		t.Fatalf("only %d queries were found", len(found))
	}
	return found
}

// TestMetricsAreNamed looks for each metric of the panels and alerts in what the running program tells, and for each that
// it tells in the README.
func TestMetricsAreNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server, ops := providerdtest.ServeWithOps(t, folder)
	server.Create(t, http.DefaultClient)
	known := map[string]bool{"up": true}
	for series := range providerdtest.Scrape(t, ops) {
		name, _, _ := strings.Cut(series, "{")
		known[name] = true
	}
	name := regexp.MustCompile(`\b(up|(?:providerd|go|process)_[a-z0-9_]+)\b`)
	asked := map[string]bool{}
	for what, query := range queries(t) {
		names := name.FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing", what)
		}
		for _, one := range names {
			if asked[one] = true; !known[one] {
				t.Errorf("%s asks for %s, which there is not", what, one)
			}
		}
	}
	_, text := providerdtest.Get(t, ops+"/metrics")
	var told []string
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (providerd_\S+) `).FindAllStringSubmatch(text, -1) {
		told = append(told, match[1])
	}
	if listed := inReadme(t, "providerd_[a-z_]+"); len(told) == 0 || !slices.Equal(slices.Sorted(slices.Values(listed)), told) {
		t.Errorf("the README lists %v, the program tells %v", listed, told)
	}
	for one := range known {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(one, "")
		if strings.HasPrefix(one, "providerd_") && !asked[one] && !asked[base+"_bucket"] {
			t.Errorf("nobody asks for %s", one)
		}
	}
}

// Each alert is shown to fire, and to stay silent.
func TestEachAlertHasTests(t *testing.T) {
	t.Parallel()
	var tests ruleTests
	readOperate(t, "cmd/providerd/e2e/shipped/alerts_test.yaml", &tests)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, one := range test.AlertRuleTest {
			if len(one.ExpAlerts) > 0 {
				fires[one.Alertname] = true
			} else {
				silent[one.Alertname] = true
			}
		}
	}
	for _, rule := range readRules(t) {
		if !fires[rule.Alert] || !silent[rule.Alert] {
			t.Errorf("%s is shown to fire: %v, to stay silent: %v", rule.Alert, fires[rule.Alert], silent[rule.Alert])
		}
	}
}

// inReadme are the names in the first cells of the README's tables of metrics and alerts.
func inReadme(t *testing.T, name string) (names []string) {
	t.Helper()
	for line := range strings.Lines(providerdtest.ReadmeSection(t, "Metrics and alerts")) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, match := range regexp.MustCompile("`("+name+")`").FindAllStringSubmatch(cells[1], -1) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

func TestReadmeExplainsAlerts(t *testing.T) {
	t.Parallel()
	var alerts []string
	for _, rule := range readRules(t) {
		alerts = append(alerts, rule.Alert)
	}
	if explained := inReadme(t, "Providerd[A-Za-z]+"); len(alerts) == 0 || !slices.Equal(explained, alerts) {
		t.Errorf("the README explains %v, the rules have %v", explained, alerts)
	}
}
