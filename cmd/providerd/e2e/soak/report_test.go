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

	"example.com/providerd/cmd/providerd/providerdtest"

	"example.com/providerd/cmd/bench/figures"
)

// judgedTime is how long a process lives of which it can be told whether it grows. Of an ordinary run, that is the
// first alone: after the restart, it takes seconds until all callers are back.
const judgedTime = 10 * time.Second

// report demands that nothing grew, and writes the figures of a whole run.
func (s *soak) report(t *testing.T, isWhole bool) {
	t.Helper()
	if len(s.processes) != 2 {
		t.Fatalf("the watch saw %d processes, want 2", len(s.processes))
	}
	for i, samples := range s.processes {
		if samples[len(samples)-1].at-samples[0].at < judgedTime {
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
		figures.Put(providerdtest.Path(t, "cmd/providerd/manual/sizing.md"), "figures: make soak writes them", course),
		figures.Put(providerdtest.Path(t, "cmd/providerd/manual/sizing.md"), "sizes: make soak writes them", sizes),
		os.WriteFile("soak.svg", []byte(s.plot().SVG()), 0o600),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// course tells how the processes went on.
func (s *soak) course() string {
	var text strings.Builder
	var answers []string
	for _, kind := range slices.Sorted(maps.Keys(s.journal.answers)) {
		answers = append(answers, fmt.Sprintf("%s %d", kind, s.journal.answers[kind]))
	}
	fmt.Fprintf(&text, "%d requests in %.0f s, answered as they are to be: %s.\n\n"+
		"| | before the restart | after it |\n| --- | --- | --- |\n",
		s.journal.requests, s.lasted().Seconds(), strings.Join(answers, ", "))
	row := func(title string, cell func(samples []soakSample) string) {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", title, cell(s.processes[0]), cell(s.processes[1]))
	}
	row("seconds; creates/s", func(samples []soakSample) string {
		first, last := samples[0], samples[len(samples)-1]
		seconds := (last.at - first.at).Seconds()
		return fmt.Sprintf("%.0f; %.0f", seconds, added(samples, "creates")/seconds)
	})
	before, after := s.waits(0, s.ended), s.waits(s.ended, math.MaxInt64)
	fmt.Fprintf(&text, "| a create, ms: median, p99, longest | %.1f, %.1f, %.0f | %.1f, %.1f, %.0f |\n",
		providerdtest.Quantile(before, 0.5), providerdtest.Quantile(before, 0.99), providerdtest.Quantile(before, 1),
		providerdtest.Quantile(after, 0.5), providerdtest.Quantile(after, 0.99), providerdtest.Quantile(after, 1))
	for _, m := range soakMeasures() {
		row(m.name+": second fifth, last fifth, most", func(samples []soakSample) string {
			found := m.judge(samples)
			return fmt.Sprintf("%.0f, %.0f, %.0f", found.early/m.unit, found.late/m.unit, found.most/m.unit)
		})
	}
	row("lines of the log that were dropped, and counted", func(samples []soakSample) string {
		return fmt.Sprintf("%.0f", samples[len(samples)-1].values[droppedSeries])
	})
	return text.String()
}

// lasted is how long the load went on.
func (s *soak) lasted() time.Duration { return s.processes[1][len(s.processes[1])-1].at }

// waits returns how long creates took that were answered within a time, in ms, sorted.
func (s *soak) waits(from, to time.Duration) []float64 {
	return providerdtest.Milliseconds(slices.DeleteFunc(slices.Clone(s.journal.Latencies), func(one providerdtest.Latency) bool {
		return one.At < from || one.At >= to
	}))
}

// added is how much a value has grown.
func added(samples []soakSample, value string) float64 {
	return samples[len(samples)-1].values[value] - samples[0].values[value]
}

// sizes tells what the server took.
func (s *soak) sizes() string {
	processor, requests := 0.0, 0.0
	for _, samples := range s.processes {
		processor += added(samples, processorSeries)
		requests += added(samples, "requests")
	}
	all := slices.Concat(s.processes...)
	database, backup := sizeOf(s.server.folder, "data/providerd.db"), sizeOf(s.server.folder, "backup.db")
	stored := len(s.journal.Creates)
	return fmt.Sprintf("| what | measured |\n| --- | --- |\n"+
		"| database, bytes a provider | %d (%d providers in %.1f MiB) |\n"+
		"| its WAL at most, MiB | %.0f |\n"+
		"| a backup of %d providers | %.1f MiB in %.1f s |\n"+
		"| log, bytes a request | %d |\n"+
		"| resident memory, MiB | %.0f idle, at most %.0f under this load |\n"+
		"| processor time, s for 1,000 requests | %.2f |\n",
		int(database)/stored, stored, float64(database)/mib, slices.Max(valuesOf(all, "wal"))/mib,
		len(s.backup.creates), float64(backup)/mib, s.backup.took.Seconds(), s.log.Bytes/s.log.Requests,
		s.idle.values[residentSeries]/mib, slices.Max(valuesOf(all, residentSeries))/mib, processor/requests*1000)
}

// plot draws the run over its time.
func (s *soak) plot() figures.Lines {
	length := (s.lasted() + time.Second).Truncate(time.Second)
	step := max(length/soakSamples, time.Second).Round(time.Second)
	var rate, middle, slow []figures.Point
	for from := time.Duration(0); from+step <= length; from += step {
		at, waits := from+step/2, s.waits(from, from+step)
		rate = append(rate, figures.Point{At: at, Value: float64(len(waits)) / step.Seconds()})
		if len(waits) > 0 {
			middle = append(middle, figures.Point{At: at, Value: providerdtest.Quantile(waits, 0.5)})
			slow = append(slow, figures.Point{At: at, Value: providerdtest.Quantile(waits, 0.99)})
		}
	}
	measured := func(name string, number int) figures.Curve {
		m, one := soakMeasures()[number], figures.Curve{Name: name}
		for _, samples := range s.processes {
			var part []figures.Point
			for _, sample := range samples {
				part = append(part, figures.Point{At: sample.at, Value: sample.values[m.value] / m.unit})
			}
			one.Parts = append(one.Parts, part)
		}
		return one
	}
	waited := []figures.Curve{{Name: "median", Parts: [][]figures.Point{middle}}, {Name: "p99", Parts: [][]figures.Point{slow}}}
	return figures.Lines{Length: length, Marks: s.marks, Panels: []figures.Panel{
		{Title: "creates per second", Curves: []figures.Curve{{Name: "all callers", Parts: [][]figures.Point{rate}}}},
		{Title: "time of a create, ms", Least: 0.1, Curves: waited},
		{Title: "memory, MiB", Curves: []figures.Curve{measured("resident", 0), measured("live heap of Go", 1)}},
		{Title: "open", Curves: []figures.Curve{measured("descriptors", 2), measured("goroutines", 3)}},
	}}
}

// sizeOf is how many bytes a file of a folder has, or 0 if there is none.
func sizeOf(folder, name string) int64 {
	info, err := os.Stat(filepath.Join(folder, name))
	if err != nil {
		return 0
	}
	return info.Size()
}
