//go:build slow

package shipped_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestPrometheusTool checks the metrics of a running server, the configuration and the alerts with promtool.
func TestPrometheusTool(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "prometheus", "promtool")
	server, ops := providerdtest.ServeWithOps(t, t.TempDir())
	server.Create(t, contracttest.Client(t))
	_, metrics := providerdtest.Get(t, ops+"/metrics")
	for input, arguments := range map[string][]string{
		metrics: {"check", "metrics"},
		"":      {"check", "config", providerdtest.Path(t, "cmd/providerd/deploy/prometheus.yaml")},
		" ":     {"test", "rules", "alerts_test.yaml"},
	} {
		tool := exec.CommandContext(t.Context(), "promtool", arguments...)
		tool.Stdin = strings.NewReader(input)
		processtest.Run(t, tool)
	}
}

// TestPrometheusScrapes lets Prometheus scrape two servers, one of them with a certificate, and the metrics of a backup,
// with the shipped configuration. Each query of the dashboard must then have a result, and each alert must be evaluated
// and silent.
func TestPrometheusScrapes(t *testing.T) {
	t.Parallel()
	dir, secured := t.TempDir(), t.TempDir()
	server, ops := providerdtest.ServeWithOps(t, dir)
	providerdtest.WriteCertificateValid(t, secured, 1, time.Now(), time.Now().AddDate(0, 1, 0))
	withTLS := providerdtest.Serve(t, secured, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--ops-listen", "127.0.0.1:0")
	providerdtest.RunCommand(t, dir, "backup", "backup.db", "--metrics-file", "backup.prom")
	backup := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		http.ServeFile(w, r, filepath.Join(dir, "backup.prom"))
	}))
	defer backup.Close()
	prometheus := startPrometheus(t, ops, providerdtest.OpsURL(t, withTLS), backup.URL)
	client := contracttest.Client(t)
	for origin, query := range queries(t) {
		if strings.HasPrefix(origin, "alert ") {
			continue
		}
		query = strings.NewReplacer("$__rate_interval", "30s", "$job", ".*", "$instance", ".*").Replace(query)
		processtest.WaitUntil(t, origin+" has a result", func() bool {
			server.Create(t, client)
			server.ExpectPost(t, client, http.StatusBadRequest, providerdtest.OAuth2Path, "{}", "")
			var data struct{ Result []any }
			getPrometheus(t, prometheus+"/api/v1/query?query="+url.QueryEscape(query), &data)
			return len(data.Result) > 0
		})
	}
	count := 0
	processtest.WaitUntil(t, "all alerts were evaluated", func() bool {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, State, Health, LastError string }
			}
		}
		getPrometheus(t, prometheus+"/api/v1/rules", &data)
		count = 0
		for _, group := range data.Groups {
			for _, rule := range group.Rules {
				if count++; rule.LastError != "" || rule.State == "firing" {
					t.Fatalf("%s is %s: %s", rule.Name, rule.State, rule.LastError)
				}
				if rule.Health != "ok" {
					return false
				}
			}
		}
		return true
	})
	if count == 0 {
		t.Error("Prometheus has no alerts")
	}
}

// startPrometheus starts a Prometheus that scrapes addresses each second. It returns its URL.
func startPrometheus(t *testing.T, targets ...string) string {
	t.Helper()
	processtest.NeedPrograms(t, "prometheus", "prometheus")
	config := providerdtest.ReadFile(t, "cmd/providerd/deploy/prometheus.yaml")
	alerts := providerdtest.Path(t, "cmd/providerd/deploy/alerts.yaml")
	text := strings.NewReplacer("15s", "1s", "alerts.yaml", alerts, "127.0.0.1:9464",
		strings.ReplaceAll(strings.Join(targets, `", "`), "http://", "")).Replace(config)
	dir := t.TempDir()
	path := filepath.Join(dir, "prometheus.yaml")
	processtest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	command := exec.CommandContext(t.Context(), "prometheus", "--config.file", path, "--web.listen-address", "127.0.0.1:0",
		"--storage.tsdb.path", filepath.Join(dir, "data"))
	prometheus, err := processtest.Start(command)
	processtest.Must(t, err)
	t.Cleanup(func() {
		if _ = prometheus.Kill(); t.Failed() {
			t.Log(prometheus.Stderr)
		}
	})
	address, url := regexp.MustCompile(`msg="Listening on" address=(\S+)`), ""
	processtest.WaitUntil(t, "Prometheus is ready", func() bool {
		match := address.FindStringSubmatch(prometheus.Stderr.String())
		if match == nil {
			return false
		}
		url = "http://" + match[1]
		response, err := http.Get(url + "/-/ready")
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
	return url
}

// getPrometheus reads the data of a response of the Prometheus API into a value.
func getPrometheus(t *testing.T, url string, data any) {
	t.Helper()
	_, text := providerdtest.Get(t, url)
	response := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal([]byte(text), &response); err != nil || response.Status != "success" {
		t.Fatalf("%s: %v, %s", url, err, response.Error)
	}
}
