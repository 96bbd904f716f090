//go:build slow

package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"example.com/providerd/cmd/bench/figures"
	"example.com/providerd/cmd/providerd/providerdtest"
)

// minJudgedTime is how long a process must run to be judged. In an ordinary run, that is only the first process: after
// the restart, callers need seconds to reconnect.
const minJudgedTime = 10 * time.Second

// report checks that nothing grew, and writes the figures of a whole run.
func (s *soak) report(t *testing.T, isWhole bool) {
	t.Helper()
	if len(s.processes) != 2 {
		t.Fatalf("sampled %d processes, want 2", len(s.processes))
	}
	for i, samples := range s.processes {
		samples = warmedUp(samples)
		if samples[len(samples)-1].at-samples[0].at < minJudgedTime {
			continue
		}
		for _, m := range soakMeasures() {
			if found := m.judge(samples); !found.isFlat() {
				t.Errorf("process %d: %s: %+v", i+1, m.name, found)
			}
		}
	}
	sizes := s.sizes()
	t.Log("\n" + sizes)
	if !isWhole || t.Failed() {
		return
	}
	err := figures.Put(providerdtest.Path(t, "cmd/providerd/manual/configuration.md"), "sizes: make proof PROOF=soak writes them", sizes)
	if err != nil {
		t.Error(err)
	}
}

// warmedUp omits the samples before the first garbage collection under load, until which memory always grows.
func warmedUp(samples []soakSample) []soakSample {
	const collections = "go_gc_duration_seconds_count"
	first := slices.IndexFunc(samples, func(sample soakSample) bool {
		return sample.values[collections] > samples[0].values[collections]
	})
	return samples[max(first, 0):]
}

// added returns how much a value has grown.
func added(samples []soakSample, value string) float64 {
	return samples[len(samples)-1].values[value] - samples[0].values[value]
}

// sizes returns the resources that the server used.
func (s *soak) sizes() string {
	processor, requests := 0.0, 0.0
	for _, samples := range s.processes {
		processor += added(samples, processorSeries)
		requests += added(samples, "requests")
	}
	all := slices.Concat(s.processes...)
	database, backup := sizeOf(s.server.dir, "data/providerd.db"), sizeOf(s.server.dir, "backup.db")
	stored := len(s.journal.Creates)
	return fmt.Sprintf("| resource | measured |\n| --- | --- |\n"+
		"| database, bytes per provider | %d (%d providers in %.1f MiB) |\n"+
		"| largest WAL, MiB | %.0f |\n"+
		"| backup of %d providers | %.1f MiB in %.1f s |\n"+
		"| log, bytes per request | %d |\n"+
		"| resident memory, MiB | %.0f idle, at most %.0f under this load |\n"+
		"| CPU time, s per 1,000 requests | %.2f |\n",
		int(database)/stored, stored, float64(database)/mib, slices.Max(valuesOf(all, "wal"))/mib,
		len(s.backup.creates), float64(backup)/mib, s.backup.took.Seconds(), s.log.Bytes/s.log.Requests,
		s.idle.values[residentSeries]/mib, slices.Max(valuesOf(all, residentSeries))/mib, processor/requests*1000)
}

// sizeOf returns the size of a file in a directory, or 0 if it does not exist.
func sizeOf(dir, name string) int64 {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	return info.Size()
}
