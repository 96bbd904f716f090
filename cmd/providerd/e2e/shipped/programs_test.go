//go:build slow

package shipped_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

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
// with the shipped configuration. Each query of the dashboard must then have a result, and each alert must query series
// that exist, be evaluated and be silent. Each metric of providerd must be in one of them.
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
	rules, panels := readDeployed(t)
	var queries []string
	for _, rule := range rules {
		queries = append(queries, rule.Expr)
	}
	for _, panel := range panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
			query := strings.NewReplacer("$__rate_interval", "30s", "$job", ".*", "$instance", ".*").Replace(target.Expr)
			processtest.WaitUntil(t, "panel "+panel.Title+": "+target.Expr+" has a result", func() bool {
				server.Create(t, client)
				server.ExpectPost(t, client, http.StatusBadRequest, providerdtest.OAuth2Path, "{}", "")
				var data struct{ Result []any }
				getPrometheus(t, prometheus+"/api/v1/query?query="+url.QueryEscape(query), &data)
				return len(data.Result) > 0
			})
		}
	}
	processtest.Expect(t, len(queries) >= 30, "found %d queries, want at least 30", len(queries))
	checkSeries(t, prometheus, queries)
	checkAlerts(t, prometheus)
}

// checkAlerts waits until Prometheus has evaluated all alerts, none of which may fire.
func checkAlerts(t *testing.T, prometheus string) {
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
	processtest.Expect(t, count != 0, "Prometheus has no alerts")
}

// checkSeries checks that the series of queries exist in Prometheus, and that all series of providerd, or others of the
// same histogram, are queried.
func checkSeries(t *testing.T, prometheus string, queries []string) {
	var scraped []string
	getPrometheus(t, prometheus+"/api/v1/label/__name__/values", &scraped)
	names := regexp.MustCompile(`\b(?:up|(?:providerd|go|process)_[a-z0-9_]+)\b`)
	histogram, queried := regexp.MustCompile(`_(bucket|sum|count)$`), map[string]bool{}
	for _, query := range queries {
		found := names.FindAllString(query, -1)
		processtest.Expect(t, len(found) != 0, "%s queries no metric", query)
		for _, name := range found {
			queried[histogram.ReplaceAllString(name, "")] = true
			processtest.Expect(t, slices.Contains(scraped, name), "%s queries %s, which does not exist", query, name)
		}
	}
	for _, name := range scraped {
		processtest.Expect(t, !strings.HasPrefix(name, "providerd_") || queried[histogram.ReplaceAllString(name, "")],
			"neither the dashboard nor an alert queries %s", name)
	}
}

func startPrometheus(t *testing.T, targets ...string) string {
	processtest.NeedPrograms(t, "prometheus", "prometheus")
	config := providerdtest.ReadFile(t, "cmd/providerd/deploy/prometheus.yaml")
	alerts := providerdtest.Path(t, "cmd/providerd/deploy/alerts.yaml")
	text := strings.NewReplacer("15s", "1s", "alerts.yaml", alerts, "127.0.0.1:9464",
		strings.ReplaceAll(strings.Join(targets, `", "`), "http://", "")).Replace(config)
	dir, address := t.TempDir(), processtest.Local(processtest.FreePort(t))
	path := filepath.Join(dir, "prometheus.yaml")
	processtest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	command := exec.CommandContext(t.Context(), "prometheus", "--config.file", path, "--web.listen-address", address,
		"--storage.tsdb.path", filepath.Join(dir, "data"))
	prometheus := processtest.Try(processtest.Start(command)).Must(t)
	t.Cleanup(func() {
		if _ = prometheus.Kill(); t.Failed() {
			t.Log(prometheus.Stderr)
		}
	})
	processtest.WaitUntil(t, "Prometheus is ready", func() bool {
		response, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
	return "http://" + address
}

func getPrometheus(t *testing.T, url string, data any) {
	t.Helper()
	_, text := providerdtest.Get(t, url)
	response := struct {
		Status, Error string
		Data          any
	}{Data: data}
	err := json.Unmarshal([]byte(text), &response)
	processtest.Require(t, err == nil && response.Status == "success", "%s: %v, %s", url, err, response.Error)
}

// TestCaddyForwards runs the Caddyfile in front of a server that trusts it. The log has the address of the client, not
// the one that the client claims.
func TestCaddyForwards(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "caddy", "caddy")
	server := providerdtest.Serve(t, t.TempDir(), "--trusted-proxy", "127.0.0.1")
	proxy := "http://" + processtest.Local(processtest.FreePort(t))
	text := strings.Replace(providerdtest.ReadFile(t, "cmd/providerd/deploy/Caddyfile"), "{$DOMAIN:localhost}", proxy, 1)
	text = regexp.MustCompile(`dynamic a api 8080 \{[^}]*\}`).ReplaceAllString(text, "to "+server.URL)
	dir := t.TempDir()
	path := filepath.Join(dir, "Caddyfile")
	processtest.Must(t, os.WriteFile(path, []byte("{\n\tadmin off\n}\n"+text), 0o600))
	command := exec.CommandContext(t.Context(), "caddy", "run", "--adapter", "caddyfile", "--config", path)
	command.Env = append(os.Environ(), "HOME="+dir)
	caddy := processtest.Try(processtest.Start(command)).Must(t)
	t.Cleanup(func() { _ = caddy.Kill() })
	// The client has another address than the proxy.
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	token, header := providerdtest.Token(t, server.Dir), http.Header{"Content-Type": {"application/json"}, "X-Forwarded-For": {"192.0.2.1"}}
	processtest.WaitUntil(t, "Caddy forwards", func() bool {
		status, _, err := (&providerdtest.Server{URL: proxy}).Do(client, http.MethodPost, providerdtest.OAuth2Path, token, providerdtest.OAuth2Body, header)
		return err == nil && status == http.StatusCreated
	})
	server.Stop(t)
	if log := server.Stderr.String(); !strings.Contains(log, " client=127.0.0.2 ") || strings.Contains(log, "192.0.2.1") {
		t.Errorf("the log is %s", log)
	}
}

func TestRunbookQueriesWork(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "postgres", "psql")
	url := postgrestest.NewCluster(t).CreateDatabase(t)
	commands := matches(t, `(?m)^(psql .*)`)
	for _, command := range commands {
		shell := exec.CommandContext(t.Context(), "bash", "-euc", command)
		shell.Env = append(os.Environ(), "PROVIDERD_DATABASE="+url)
		processtest.Run(t, shell)
	}
	processtest.Expect(t, len(commands) != 0, "the runbooks have no queries")
}
