//go:build slow

package soak_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		if samples[len(samples)-1].at-samples[0].at < minJudgedTime {
			continue
		}
		for _, m := range soakMeasures() {
			if found := m.judge(samples); !found.isFlat() {
				t.Errorf("process %d: %s: %+v", i+1, m.name, found)
			}
		}
	}
	course, sizes := s.course(), s.sizes()
	t.Log("\n" + course + "\n" + sizes)
	if !isWhole || t.Failed() {
		return
	}
	for _, err := range []error{
		figures.Put(providerdtest.Path(t, "cmd/providerd/manual/configuration.md"), "sizes: make proof PROOF=soak writes them", sizes),
		os.WriteFile("soak.svg", []byte(s.plot().SVG()), 0o600),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// course returns the figures of both processes.
func (s *soak) course() string {
	var text strings.Builder
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(s.journal.expected)) {
		counts = append(counts, fmt.Sprintf("%s %d", kind, s.journal.expected[kind]))
	}
	fmt.Fprintf(&text, "%d requests in %.0f s got the expected responses: %s.\n\n"+
		"| | before the restart | after it |\n| --- | --- | --- |\n",
		s.journal.requests, s.duration().Seconds(), strings.Join(counts, ", "))
	row := func(title string, cell func(samples []soakSample) string) {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", title, cell(s.processes[0]), cell(s.processes[1]))
	}
	row("seconds; creates/s", func(samples []soakSample) string {
		first, last := samples[0], samples[len(samples)-1]
		seconds := (last.at - first.at).Seconds()
		return fmt.Sprintf("%.0f; %.0f", seconds, added(samples, "creates")/seconds)
	})
	before, after := s.latencies(0, s.ended), s.latencies(s.ended, math.MaxInt64)
	fmt.Fprintf(&text, "| latency of a create, ms: median, p99, maximum | %.1f, %.1f, %.0f | %.1f, %.1f, %.0f |\n",
		providerdtest.Quantile(before, 0.5), providerdtest.Quantile(before, 0.99), providerdtest.Quantile(before, 1),
		providerdtest.Quantile(after, 0.5), providerdtest.Quantile(after, 0.99), providerdtest.Quantile(after, 1))
	for _, m := range soakMeasures() {
		row(m.name+": second fifth, last fifth, maximum", func(samples []soakSample) string {
			found := m.judge(samples)
			return fmt.Sprintf("%.0f, %.0f, %.0f", found.early/m.unit, found.late/m.unit, found.maximum/m.unit)
		})
	}
	row("dropped log lines", func(samples []soakSample) string {
		return fmt.Sprintf("%.0f", samples[len(samples)-1].values[droppedSeries])
	})
	return text.String()
}

// duration returns the duration of the load.
func (s *soak) duration() time.Duration { return s.processes[1][len(s.processes[1])-1].at }

// latencies returns the sorted latencies, in ms, of creates that were acknowledged in a period.
func (s *soak) latencies(from, to time.Duration) []float64 {
	return providerdtest.Milliseconds(slices.DeleteFunc(slices.Clone(s.journal.Latencies), func(latency providerdtest.Latency) bool {
		return latency.At < from || latency.At >= to
	}))
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

// plot draws the run over time.
func (s *soak) plot() figures.Lines {
	length := (s.duration() + time.Second).Truncate(time.Second)
	step := max(length/soakSamples, time.Second).Round(time.Second)
	var rate, middle, slow []figures.Point
	for from := time.Duration(0); from+step <= length; from += step {
		at, latencies := from+step/2, s.latencies(from, from+step)
		rate = append(rate, figures.Point{At: at, Value: float64(len(latencies)) / step.Seconds()})
		if len(latencies) > 0 {
			middle = append(middle, figures.Point{At: at, Value: providerdtest.Quantile(latencies, 0.5)})
			slow = append(slow, figures.Point{At: at, Value: providerdtest.Quantile(latencies, 0.99)})
		}
	}
	measured := func(name string, number int) figures.Curve {
		m, curve := soakMeasures()[number], figures.Curve{Name: name}
		for _, samples := range s.processes {
			var part []figures.Point
			for _, sample := range samples {
				part = append(part, figures.Point{At: sample.at, Value: sample.values[m.value] / m.unit})
			}
			curve.Parts = append(curve.Parts, part)
		}
		return curve
	}
	creates := []figures.Curve{{Name: "median", Parts: [][]figures.Point{middle}}, {Name: "p99", Parts: [][]figures.Point{slow}}}
	return figures.Lines{Length: length, Marks: s.marks, Panels: []figures.Panel{
		{Title: "creates per second", Curves: []figures.Curve{{Name: "all callers", Parts: [][]figures.Point{rate}}}},
		{Title: "latency of a create, ms", Least: 0.1, Curves: creates},
		{Title: "memory, MiB", Curves: []figures.Curve{measured("resident", 0), measured("live heap of Go", 1)}},
		{Title: "open", Curves: []figures.Curve{measured("descriptors", 2), measured("goroutines", 3)}},
	}}
}

// sizeOf returns the size of a file in a directory, or 0 if it does not exist.
func sizeOf(dir, name string) int64 {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	return info.Size()
}
