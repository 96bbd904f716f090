//go:build failover

package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// replicaCount is how many replicas a mortal fleet has.
const replicaCount = 3

// mortalFleet is a fleet of which replicas die and come back while they are asked.
type mortalFleet struct {
	*fleet
	urls [replicaCount]atomic.Pointer[string]
}

// startMortals starts replicas over a database. They are killed when the test ends.
func startMortals(t *testing.T, program, url string) *mortalFleet {
	t.Helper()
	f := &mortalFleet{fleet: &fleet{
		program: program, folder: t.TempDir(), url: url, replicas: make([]*process, replicaCount),
	}}
	t.Cleanup(func() {
		for _, replica := range f.replicas {
			if replica == nil {
				continue
			}
			if err := replica.kill(); err != nil {
				t.Error(err)
			}
		}
	})
	f.begin(t)
	for i, replica := range f.replicas {
		f.urls[i].Store(&replica.url)
	}
	return f
}

// token is one for both operations.
func (f *mortalFleet) token(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.folder, "data", initialTokenFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// endAndRestart kills a replica, and starts it again after something. Requests to it are refused in between.
func (f *mortalFleet) endAndRestart(t *testing.T, i int, between func()) {
	t.Helper()
	if err := f.replicas[i].kill(); err != nil {
		t.Fatal(err)
	}
	f.replicas[i] = nil
	between()
	f.start(t, i)
	if t.Failed() {
		t.FailNow()
	}
	f.urls[i].Store(&f.replicas[i].url)
}

func (f *mortalFleet) urlOf(i int) string { return *f.urls[i].Load() }

// logs is the end of what the replicas have said.
func (f *mortalFleet) logs() string {
	var text strings.Builder
	for _, replica := range f.replicas {
		lines := strings.Split(replica.stderr.String(), "\n")
		text.WriteString(strings.Join(lines[max(0, len(lines)-12):], "\n"))
	}
	return text.String()
}
