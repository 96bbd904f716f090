package providerdtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// ServeWithOps starts a server with an ops listener, and also returns its URL.
func ServeWithOps(t *testing.T, dir string) (server *Server, url string) {
	t.Helper()
	server = Serve(t, dir, "--ops-listen", "127.0.0.1:0")
	return server, OpsURL(t, server)
}

// OpsURL returns the URL of the ops listener, which the server reports.
func OpsURL(t *testing.T, server *Server) (url string) {
	t.Helper()
	processtest.WaitUntil(t, "the server reports its ops listener", func() bool {
		url = FindOpsURL(server.Stderr.String())
		return url != ""
	})
	return url
}

// FindOpsURL returns the URL of the ops listener in a log, or "".
func FindOpsURL(log string) string {
	match := regexp.MustCompile(`serving metrics, health and pprof profiles(?: on |","url":")(http://[0-9.:]+)`).FindStringSubmatch(log)
	if match == nil {
		return ""
	}
	return match[1]
}

// Get returns the status and the body of a GET response.
func Get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// Scrape returns the metrics by series, such as providerd_problems_total{type="internal"}.
func Scrape(t *testing.T, ops string) map[string]float64 {
	t.Helper()
	status, text := Get(t, ops+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("status is %d: %s", status, text)
	}
	series, err := ParseSeries(text)
	if err != nil {
		t.Fatal(err)
	}
	return series
}

// ParseSeries parses the text format of Prometheus.
func ParseSeries(text string) (map[string]float64, error) {
	series := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		series[line[:at]] = value
	}
	return series, nil
}

// Readiness returns the response of /readyz.
func Readiness(t *testing.T, server *Server) (status int, readiness string) {
	t.Helper()
	status, text := Get(t, server.URL+"/readyz")
	var body struct{ Status string }
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return status, strings.TrimSpace(body.Status)
}
