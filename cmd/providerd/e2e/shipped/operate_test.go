// Package shipped_test tests what operators get: everything that "make dist" builds, the image, the systemd unit, the
// Prometheus configuration, alerts and their runbooks, and the dashboard. Most tests need other programs and name those
// that are missing.
//
// Start with dist_test.go for what is built, and with this file for what is copied from cmd/providerd/deploy.
package shipped_test

import (
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

func TestMain(m *testing.M) { providerdtest.Main(m) }

// rule is an alert of deploy/alerts.yaml.
type rule struct {
	Alert, Expr string
	Annotations struct {
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

func readDeployed(t *testing.T) (rules []rule, panels []panel) {
	t.Helper()
	var alerts struct{ Groups []struct{ Rules []rule } }
	var board struct{ Panels []panel }
	for name, value := range map[string]any{"alerts.yaml": &alerts, "dashboard.json": &board} {
		processtest.Must(t, yaml.Unmarshal([]byte(providerdtest.ReadFile(t, "cmd/providerd/deploy/"+name)), value))
	}
	for _, group := range alerts.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, board.Panels
}

// TestAlertsHaveUnitTests checks that alerts_test.yaml shows each alert firing for a only, although b exists.
func TestAlertsHaveUnitTests(t *testing.T) {
	t.Parallel()
	tests := strings.Split(providerdtest.ReadFile(t, "cmd/providerd/e2e/shipped/alerts_test.yaml"), "\n  - name: ")
	rules, _ := readDeployed(t)
	for _, rule := range rules {
		shown := regexp.MustCompile(`(?s)^` + rule.Alert + `\n.* instance="a".* instance="b".*\n` +
			`      - alertname: ` + rule.Alert + `\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels: `)
		isShown := func(test string) bool { return shown.MatchString(test) && strings.Count(test, "exp_labels: ") == 1 }
		processtest.Expect(t, slices.ContainsFunc(tests, isShown), "no test of %s matches %q", rule.Alert, shown)
	}
}

// TestDashboardShowsAlertLimits checks that the line of each panel is at the limit of the alert in its description.
func TestDashboardShowsAlertLimits(t *testing.T) {
	t.Parallel()
	rules, panels := readDeployed(t)
	alerts := map[string]string{}
	for _, rule := range rules {
		alerts[rule.Alert] = rule.Expr
	}
	lines := 0
	for _, panel := range panels {
		named := regexp.MustCompile(`the limit of the alert (\w+)`).FindStringSubmatch(panel.Description)
		if named == nil {
			continue
		}
		lines++
		// The number that the alert compares with may be written as a product.
		steps, expression, limit := panel.FieldConfig.Defaults.Thresholds.Steps, alerts[named[1]], 1.0
		for factor := range strings.SplitSeq(expression[strings.LastIndex(expression, ">")+1:], "*") {
			limit *= processtest.Try(strconv.ParseFloat(strings.TrimSpace(factor), 64)).Must(t)
		}
		processtest.Expect(t, len(steps) == 2 && steps[1].Value == limit,
			"panel %q has the thresholds %v, and %s has the expression %s", panel.Title, steps, named[1], expression)
	}
	processtest.Expect(t, lines >= 5, "%d panels name an alert, want at least 5", lines)
}

// TestRequestsOfRelease sends the requests of providerd.http as an editor would.
func TestRequestsOfRelease(t *testing.T) {
	t.Parallel()
	server, client := providerdtest.Serve(t, t.TempDir()), contracttest.Client(t)
	file := providerdtest.Output(t, exec.CommandContext(t.Context(), "go", "run", "../../../../.ci/release"))
	text := strings.NewReplacer("{{host}}", server.URL, "{{token}}", providerdtest.Token(t, server.Dir)).Replace(file)
	requests := strings.Split(text, "\n### ")[1:]
	for _, request := range requests {
		head, body, _ := strings.Cut(request, "\n\n")
		url := regexp.MustCompile(`(?m)^POST (\S+)$`).FindStringSubmatch(head)
		sent := processtest.Try(http.NewRequestWithContext(t.Context(), http.MethodPost, url[1], strings.NewReader(body))).Must(t)
		for _, header := range regexp.MustCompile(`(?m)^([\w-]+): (.+)$`).FindAllStringSubmatch(head, -1) {
			sent.Header.Set(header[1], header[2])
		}
		// The variable is another one for each request.
		sent.Header.Del("Idempotency-Key")
		response := processtest.Try(client.Do(sent)).Must(t)
		_ = response.Body.Close()
		processtest.Expect(t, response.StatusCode == http.StatusCreated || response.StatusCode == http.StatusOK,
			"%s: status is %d", head, response.StatusCode)
	}
	processtest.Equal(t, len(requests), 8, "requests")
}
