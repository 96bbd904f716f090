package shipped_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// metrics are the names of metrics.
type metrics map[string]bool

// scrapeMetrics returns the metrics of a server that has created a provider, of one with a certificate, and of a backup.
func scrapeMetrics(t *testing.T) metrics {
	t.Helper()
	dir := t.TempDir()
	server, ops := providerdtest.ServeWithOps(t, dir)
	server.Create(t, http.DefaultClient)
	_, text := providerdtest.Get(t, ops+"/metrics")
	providerdtest.RunCommand(t, dir, "backup", "backup.db", "--metrics-file", "backup.prom")
	figures, err := os.ReadFile(filepath.Join(dir, "backup.prom"))
	if err != nil {
		t.Fatal(err)
	}
	secured := t.TempDir()
	providerdtest.WriteCertificate(t, secured, 1)
	withTLS := providerdtest.Serve(t, secured, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--ops-listen", "127.0.0.1:0")
	_, secure := providerdtest.Get(t, providerdtest.OpsURL(t, withTLS)+"/metrics")
	ofCertificate := regexp.MustCompile(`(?m)^.*providerd_certificate.*\n`).FindAllString(secure, -1)
	text += string(figures) + strings.Join(ofCertificate, "")
	found := metrics{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return found
}

// nameOf returns the name of the metric that a series belongs to: a histogram has several.
func (m metrics) nameOf(series string) string {
	if m[series] {
		return series
	}
	return regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(series, "")
}

// own returns the names of the metrics except for Go and the process, in order.
func (m metrics) own() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(name string) bool {
		return !strings.HasPrefix(name, "providerd_")
	})
}

// TestDashboardAndAlertsUseMetrics checks that panels and alerts query metrics that exist, and that each metric of
// providerd is in one of them.
func TestDashboardAndAlertsUseMetrics(t *testing.T) {
	t.Parallel()
	scraped := scrapeMetrics(t)
	series := regexp.MustCompile(`\b(up|(?:providerd|go|process)_[a-z0-9_]+)\b`)
	queried := map[string]bool{}
	for origin, query := range queries(t) {
		names := series.FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%s queries no metric", origin)
		}
		for _, name := range names {
			metric := scraped.nameOf(name)
			if queried[metric] = true; !scraped[metric] && name != "up" {
				t.Errorf("%s queries %s, which does not exist", origin, name)
			}
		}
	}
	for _, name := range scraped.own() {
		if !queried[name] {
			t.Errorf("neither the dashboard nor an alert queries %s", name)
		}
	}
}
