package providerdtest

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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
	match := regexp.MustCompile(`serving metrics, .* profiles(?: on |","url":")(http://[0-9.:]+)`).FindStringSubmatch(log)
	if match == nil {
		return ""
	}
	return match[1]
}

// Scrape returns the metrics by series, such as providerd_problems_total{type="internal"}.
func Scrape(t *testing.T, ops string) map[string]float64 {
	t.Helper()
	status, text := Get(t, ops+"/metrics")
	processtest.Require(t, status == http.StatusOK, "status is %d: %s", status, text)
	return processtest.Try(ParseSeries(text)).Must(t)
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

// ExpectReadiness checks that /readyz responds that the server is ready, draining or unavailable.
func (s *Server) ExpectReadiness(t *testing.T, want string) {
	t.Helper()
	status, text := Get(t, s.URL+"/readyz")
	if isReady := want == "ready"; isReady != (status == http.StatusOK) || !strings.Contains(text, want+`"`) {
		t.Errorf("/readyz responds %d %s, want %s", status, text, want)
	}
}

// PeakKiB returns the peak memory of a command, or 0 if it has ended: what the system reports then includes its parent
// process.
func PeakKiB(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil || !strings.Contains(string(status), "VmHWM:") {
		return 0
	}
	return NumberAfter(t, string(status), "VmHWM:")
}

// WaitPeakKiB waits until a command has ended, and returns its peak memory.
func WaitPeakKiB(t *testing.T, child *processtest.Child) (peak int) {
	t.Helper()
	for ; !child.HasEnded(); <-time.After(2 * time.Millisecond) {
		peak = max(peak, PeakKiB(t, child.Command))
	}
	return peak
}

// NumberAfter returns the first number after word in text.
func NumberAfter(t *testing.T, text, word string) int {
	t.Helper()
	_, rest, _ := strings.Cut(text, word)
	number, err := strconv.Atoi(regexp.MustCompile(`[0-9]+`).FindString(rest))
	processtest.Require(t, err == nil, "no number follows %s in %.1000s", word, text)
	return number
}

// LogCount counts the requests in a log, the bytes of their lines, and the dropped lines and the notes that report
// them.
type LogCount struct{ Requests, Bytes, Dropped, Notes int }

// Read adds the lines of a log.
func (c *LogCount) Read(log io.Reader) error {
	note := regexp.MustCompile(`level=WARN msg="log lines dropped" count=(\d+)$`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if match := note.FindStringSubmatch(lines.Text()); match != nil {
			dropped, _ := strconv.Atoi(match[1])
			c.Dropped += dropped
			c.Notes++
		} else if strings.Contains(lines.Text(), " msg=request ") {
			c.Requests++
			c.Bytes += len(lines.Text()) + len("\n")
		}
	}
	return lines.Err()
}

// Collector receives spans as OTLP over HTTP at /v1/traces.
type Collector struct {
	URL    string
	mutex  sync.Mutex
	bodies [][]byte
}

// StartCollector starts a collector that runs until the test ends.
func StartCollector(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{}
	listener := httptest.NewServer(c)
	t.Cleanup(listener.Close)
	c.URL = listener.URL
	return c
}

func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.Reader(r.Body), error(nil)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(r.Body)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "invalid export to "+r.URL.Path, http.StatusBadRequest)
		return
	}
	text, _ := io.ReadAll(body)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.bodies = append(c.bodies, text)
}

// Bodies returns the bodies of the requests received so far.
func (c *Collector) Bodies() [][]byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.bodies)
}

// StartCollectorFunc returns the URL of a collector that responds with handler. It reads each request first: closing a
// connection with unread data would reset it, and lose the response.
func StartCollectorFunc(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		handler(w, r)
	}))
	t.Cleanup(listener.Close)
	return listener.URL
}
