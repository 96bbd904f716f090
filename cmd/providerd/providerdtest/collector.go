package providerdtest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

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
