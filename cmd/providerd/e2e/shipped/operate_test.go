package shipped_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// rule is an alert of deploy/alerts.yaml.
type rule struct {
	Alert, Expr, For string
	Labels           struct{ Severity string }
	Annotations      struct {
		Summary    string
		RunbookURL string `yaml:"runbook_url"`
	}
}

// panel is a panel or a row of deploy/dashboard.json.
type panel struct {
	Title, Description string
	Targets            []struct{ Expr string }
	FieldConfig        struct {
		Defaults struct {
			Thresholds struct{ Steps []struct{ Value float64 } }
		}
	} `yaml:"fieldConfig"`
}

// readYAML reads a file of the module, in YAML or JSON, into a value.
func readYAML(t *testing.T, name string, value any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(providerdtest.ReadFile(t, name)), value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, "cmd/providerd/deploy/alerts.yaml", &file)
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

func readPanels(t *testing.T) []panel {
	t.Helper()
	var board struct{ Panels []panel }
	readYAML(t, "cmd/providerd/deploy/dashboard.json", &board)
	return board.Panels
}

// queries returns the expressions of the panels and alerts by where they are from.
func queries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, rule := range readRules(t) {
		found["alert "+rule.Alert] = rule.Expr
	}
	for _, panel := range readPanels(t) {
		for _, target := range panel.Targets {
			found["panel "+panel.Title+": "+target.Expr] = target.Expr
		}
	}
	if len(found) < 30 {
		t.Fatalf("found %d queries, want at least 30", len(found))
	}
	return found
}

// TestAlertsHaveUnitTests checks that alerts_test.yaml shows each alert firing for a, and only for a, although b exists.
func TestAlertsHaveUnitTests(t *testing.T) {
	t.Parallel()
	tests := strings.Split(providerdtest.ReadFile(t, "cmd/providerd/e2e/shipped/alerts_test.yaml"), "\n  - name: ")
	for _, rule := range readRules(t) {
		shown := regexp.MustCompile(`(?s)^` + rule.Alert + `\n.* instance="a".* instance="b".*\n` +
			`      - alertname: ` + rule.Alert + `\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels: `)
		if !slices.ContainsFunc(tests, func(test string) bool {
			return shown.MatchString(test) && strings.Count(test, "exp_labels: ") == 1
		}) {
			t.Errorf("no test of %s matches %q", rule.Alert, shown)
		}
	}
}

// limit returns the number that an alert compares with, which may be written as a product.
func (r rule) limit(t *testing.T) float64 {
	t.Helper()
	limit := 1.0
	for factor := range strings.SplitSeq(r.Expr[strings.LastIndex(r.Expr, ">")+1:], "*") {
		number, err := strconv.ParseFloat(strings.TrimSpace(factor), 64)
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		limit *= number
	}
	return limit
}

// TestDashboardShowsAlertLimits checks that the line of each panel is at the limit of the alert in its description.
func TestDashboardShowsAlertLimits(t *testing.T) {
	t.Parallel()
	alerts := map[string]rule{}
	for _, rule := range readRules(t) {
		alerts[rule.Alert] = rule
	}
	lines := 0
	for _, panel := range readPanels(t) {
		named := regexp.MustCompile(`the limit of the alert (\w+)`).FindStringSubmatch(panel.Description)
		if named == nil {
			continue
		}
		lines++
		steps, alert := panel.FieldConfig.Defaults.Thresholds.Steps, alerts[named[1]]
		if len(steps) != 2 || alert.Alert == "" || steps[1].Value != alert.limit(t) {
			t.Errorf("panel %q has the thresholds %v, and %s has the expression %s", panel.Title, steps, named[1], alert.Expr)
		}
	}
	if lines < 5 {
		t.Errorf("%d panels name an alert, want at least 5", lines)
	}
}
