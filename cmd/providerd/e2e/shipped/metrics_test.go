package shipped_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// scrapeSeries returns the names of the series of a server that has created a provider, of one with a certificate, and
// of a backup.
func scrapeSeries(t *testing.T) map[string]bool {
	t.Helper()
	dir, secured := t.TempDir(), t.TempDir()
	server, ops := providerdtest.ServeWithOps(t, dir)
	server.Create(t, http.DefaultClient)
	providerdtest.RunCommand(t, dir, "backup", "backup.db", "--metrics-file", "backup.prom")
	text, err := os.ReadFile(filepath.Join(dir, "backup.prom"))
	processtest.Must(t, err)
	series, err := providerdtest.ParseSeries(string(text))
	processtest.Must(t, err)
	maps.Copy(series, providerdtest.Scrape(t, ops))
	providerdtest.WriteCertificate(t, secured, 1)
	withTLS := providerdtest.Serve(t, secured, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--ops-listen", "127.0.0.1:0")
	maps.Copy(series, providerdtest.Scrape(t, providerdtest.OpsURL(t, withTLS)))
	names := map[string]bool{}
	for labeled := range series {
		name, _, _ := strings.Cut(labeled, "{")
		names[name] = true
	}
	return names
}

// TestDashboardAndAlertsUseMetrics checks that panels and alerts query series that exist, and that each metric of
// providerd is in one of them.
func TestDashboardAndAlertsUseMetrics(t *testing.T) {
	t.Parallel()
	scraped, queried := scrapeSeries(t), map[string]bool{}
	// A histogram has several series.
	metricOf := func(name string) string { return regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "") }
	for origin, query := range queries(t) {
		names := regexp.MustCompile(`\b(up|(?:providerd|go|process)_[a-z0-9_]+)\b`).FindAllString(query, -1)
		if len(names) == 0 {
			t.Errorf("%s queries no metric", origin)
		}
		for _, name := range names {
			if queried[metricOf(name)] = true; !scraped[name] && name != "up" {
				t.Errorf("%s queries %s, which does not exist", origin, name)
			}
		}
	}
	for name := range scraped {
		if strings.HasPrefix(name, "providerd_") && !queried[metricOf(name)] {
			t.Errorf("neither the dashboard nor an alert queries %s", name)
		}
	}
}
