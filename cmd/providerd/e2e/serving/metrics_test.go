package serving_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// watchedCall is a request with its status, and what it adds to the metrics besides the request itself.
type watchedCall struct {
	method, path, token, key, body string
	operation                      string
	status                         int
	// isCommitted reports whether it is inserted. A retry is not, if its record is found first, nor is a validation.
	isCommitted bool
	// adds are counters, each with the value of its label and, unless it is 1, what is added.
	adds string
}

func (c watchedCall) send(t *testing.T, server *providerdtest.Server) {
	t.Helper()
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {c.key}}
	status := server.Send(t, http.DefaultClient, c.method, c.path, c.token, c.body, header)
	processtest.Expect(t, status == c.status, "%s %s: status is %d, want %d", c.method, c.path, status, c.status)
}

// want returns what the request adds to each counter.
func (c watchedCall) want() map[string]float64 {
	want := map[string]float64{
		fmt.Sprintf(`providerd_requests_total{operation="%s",status="%d"}`, c.operation, c.status): 1,
		fmt.Sprintf(`providerd_request_duration_seconds_count{operation="%s"}`, c.operation):       1,
	}
	if c.isCommitted {
		for _, name := range []string{"batch_size_sum", "batch_size_count", "commit_duration_seconds_count"} {
			want["providerd_"+name] = 1
		}
	}
	labels := map[string]string{
		"problems": "type", "violations": "code", "token_refusals": "reason", "replays": "operation",
	}
	for _, added := range strings.FieldsFunc(c.adds, func(r rune) bool { return r == ',' }) {
		words := append(strings.Fields(added), "1")
		value, _ := strconv.ParseFloat(words[2], 64)
		want[fmt.Sprintf(`providerd_%s_total{%s="%s"}`, words[0], labels[words[0]], words[1])] = value
	}
	return want
}

// TestMetricsCount checks exactly what each request adds to the metrics, except for waits.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, ops := providerdtest.ServeWithOps(t, dir)
	narrow, revoked := providerdtest.CreateToken(t, dir, "narrow"), providerdtest.CreateToken(t, dir, "revoked")
	providerdtest.RunCommand(t, dir, "token", "revoke", "3")
	elsewhere := t.TempDir()
	other, _ := providerdtest.ServeWithOps(t, elsewhere)
	unknown := providerdtest.CreateToken(t, elsewhere, "unknown")
	other.Stop(t)
	const oauth2, directory, rest = "providers_oauth2_create", "providers_workspace_directory_create", "other"
	const taken = `{"name":"a","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01","client_id":"taken"}`
	const broken = `{"name":"","sub_mode":"x","mine":1,"yours":2}`
	for i, call := range []watchedCall{
		{http.MethodPost, providerdtest.OAuth2Path, narrow, "key", taken, oauth2, 201, true, ""},
		{http.MethodPost, providerdtest.OAuth2Path, narrow, "key", taken, oauth2, 201, false, "replays providers_oauth2_create"},
		{http.MethodPost, providerdtest.OAuth2Path, narrow, "key", providerdtest.OAuth2Body, oauth2, 422, false, "problems idempotency-key-reused, violations differs 2"},
		{http.MethodPost, providerdtest.OAuth2Path, narrow, "", taken, oauth2, 409, true, "problems client-id-taken, violations taken"},
		{
			http.MethodPost, providerdtest.OAuth2Path, narrow, "", broken, oauth2, 400, false,
			"problems validation-failed, violations empty, violations enum, violations required, violations unknown_field 2",
		},
		{http.MethodPost, providerdtest.OAuth2Path + "?validate_only=true", narrow, "", providerdtest.OAuth2Body, oauth2, 200, false, ""},
		{http.MethodPost, providerdtest.DirectoryPath, narrow, "", "{}", directory, 403, false, "problems forbidden, token_refusals forbidden"},
		{http.MethodPost, providerdtest.DirectoryPath, "", "", "{}", directory, 401, false, "problems unauthorized, token_refusals missing"},
		{http.MethodPost, providerdtest.OAuth2Path, "pvd_x", "", "{}", oauth2, 401, false, "problems unauthorized, token_refusals mistyped"},
		{http.MethodPost, providerdtest.OAuth2Path, unknown, "", "{}", oauth2, 401, false, "problems unauthorized, token_refusals unknown"},
		{http.MethodPost, providerdtest.OAuth2Path, revoked, "", "{}", oauth2, 401, false, "problems unauthorized, token_refusals revoked"},
		{http.MethodPut, providerdtest.OAuth2Path, narrow, "", "{}", rest, 405, false, "problems method-not-allowed"},
		{"MADE-UP", "/nowhere?a=b", narrow, "", "{}", rest, 404, false, "problems not-found"},
		{http.MethodGet, "/healthz", "", "", "", rest, 200, false, ""},
	} {
		before := providerdtest.Scrape(t, ops)
		call.send(t, server)
		after, want := providerdtest.Scrape(t, ops), call.want()
		counted := regexp.MustCompile(`^providerd_([a-z_]+_(total|count)|batch_size_sum)(\{|$)`)
		for name, value := range after {
			if added := value - before[name]; counted.MatchString(name) && name != "providerd_lock_wait_seconds_total" && added != want[name] {
				t.Errorf("request %d adds %v to %s, want %v", i+1, added, name, want[name])
			}
			delete(want, name)
		}
		processtest.Expect(t, len(want) == 0, "after request %d, these series are missing: %v", i+1, want)
	}
}

func TestMetricsHaveNoClientData(t *testing.T) {
	t.Parallel()
	server, ops := providerdtest.ServeWithOps(t, t.TempDir())
	server.Create(t, http.DefaultClient)
	token := providerdtest.CreateToken(t, server.Dir, "canary-caller")
	var first []string
	for round := range 3 {
		for n := range 20 {
			canary := fmt.Sprintf("canary%d-%d", round, n)
			body := `{"name":"` + canary + `","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01","client_id":"` +
				canary + `","client_secret":"` + canary + `"}`
			for _, call := range []watchedCall{
				{method: http.MethodPost, path: providerdtest.OAuth2Path, token: token, key: canary, body: body, status: 201},
				{method: http.MethodPost, path: providerdtest.OAuth2Path + "?" + canary, token: token, status: 400},
				{method: http.MethodPost, path: providerdtest.OAuth2Path, token: token, body: `{"` + canary + `":1}`, status: 400},
				{method: http.MethodPost, path: "/" + canary, token: canary, body: canary, status: 404},
				{method: "CANARY" + strconv.Itoa(n), path: providerdtest.OAuth2Path + canary, status: 404},
				{method: "CANARY" + strconv.Itoa(n), path: providerdtest.OAuth2Path, status: 405},
			} {
				call.send(t, server)
			}
		}
		names := slices.Sorted(maps.Keys(providerdtest.Scrape(t, ops)))
		if all := strings.ToLower(strings.Join(names, "\n")); strings.Contains(all, "canary") || strings.Contains(all, token) {
			t.Errorf("the metrics contain client data: %s", all)
		}
		processtest.Expect(t, round == 0 || slices.Equal(names, first), "the series were %q, and are %q", first, names)
		first = names
	}
}

func expectSeries(t *testing.T, series, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		got, ok := series[name]
		processtest.Expect(t, ok && got == value, "%s is %v, want %v", name, got, value)
	}
}

// TestMetricsOfStore checks the metrics of a SQLite database before and after a checkpoint, and without its WAL.
func TestMetricsOfStore(t *testing.T) {
	t.Parallel()
	server, ops := providerdtest.ServeWithOps(t, t.TempDir())
	server.Create(t, http.DefaultClient)
	series := providerdtest.Scrape(t, ops)
	expectSeries(t, series, map[string]float64{
		"providerd_ready": 1, "providerd_queue_length": 0, "providerd_queue_capacity": 512,
		"providerd_checkpoints_total": 0, "providerd_checkpoint_failures_total": 0, "providerd_log_lines_dropped_total": 0,
		`providerd_pool_connections_limit{pool="readers"}`: 5, `providerd_pool_connections_limit{pool="writers"}`: 2,
		`providerd_pool_connections_in_use{pool="writers"}`: 2,
	})
	if series["providerd_wal_pages"] < 1 || series["providerd_wal_copied_pages"] > series["providerd_wal_pages"] {
		t.Errorf("the WAL has %v pages, %v of them copied", series["providerd_wal_pages"], series["providerd_wal_copied_pages"])
	}
	for range untilReset {
		server.Create(t, http.DefaultClient)
	}
	processtest.WaitUntil(t, "a checkpoint is done", func() bool { return providerdtest.Scrape(t, ops)["providerd_checkpoints_total"] >= 1 })
	processtest.Must(t, os.Remove(filepath.Join(server.Dir, "data", "providerd.db-wal")))
	series = providerdtest.Scrape(t, ops)
	if _, hasWAL := series["providerd_wal_pages"]; hasWAL || series["providerd_ready"] != 0 {
		t.Errorf("without the WAL, ready is %v, and the metric of its pages exists: %v", series["providerd_ready"], hasWAL)
	}
	server.Kill(t)
}

func TestMetricsOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	dir := t.TempDir()
	keyset := filepath.Join(dir, "keyset.json")
	providerdtest.RunCommand(t, dir, "key", "create", "--keyset", keyset)
	server := providerdtest.Serve(t, dir,
		"PROVIDERD_DATABASE="+cluster.CreateDatabase(t), "PROVIDERD_KEYSET="+keyset, "--ops-listen", "127.0.0.1:0")
	series := providerdtest.Scrape(t, providerdtest.OpsURL(t, server))
	expectSeries(t, series, map[string]float64{
		"providerd_ready": 1, `providerd_pool_connections_limit{pool="readers"}`: 8,
		`providerd_pool_connections_limit{pool="writers"}`: 16,
	})
	for name := range series {
		processtest.Expect(t, !strings.Contains(name, "wal") && !strings.Contains(name, "checkpoint"), "metric %s", name)
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]float64{"": 176 << 20, "GOMEMLIMIT=100MiB": 100 << 20} {
		server := providerdtest.Serve(t, t.TempDir(), append(strings.Fields(variable), "--ops-listen", "127.0.0.1:0")...)
		processtest.Equal(t, providerdtest.Scrape(t, providerdtest.OpsURL(t, server))["go_gc_gomemlimit_bytes"],
			want, "limit with %q", variable)
		server.Stop(t)
	}
}
