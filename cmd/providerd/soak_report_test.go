//go:build slow

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
			if found, err := m.judge(samples); err != nil || !found.isFlat() {
				t.Errorf("process %d: %s: %+v, %v", i+1, m.name, found, err)
			}
		}
	}
	course, sizes := s.course(), s.sizes()
	t.Log("\n" + course + "\n" + sizes)
	if !isWhole || t.Failed() {
		return
	}
	for _, err := range []error{
		figures.Put("README.md", "figures: make soak writes them", course),
		figures.Put("README.md", "sizes: make soak writes them", sizes),
		os.WriteFile("operate/soak.svg", []byte(s.plot().SVG()), 0o600),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// course tells how the processes went on.
func (s *soak) course() string {
	journal := s.load.journal
	var text strings.Builder
	fmt.Fprintf(&text, "%d requests in %.0f s, answered as they are to be: %s.\n\n"+
		"| | before the restart | after it |\n| --- | --- | --- |\n",
		journal.requests, s.lasted().Seconds(), describeAnswers(journal.answers))
	row := func(title string, cell func(samples []soakSample) string) {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", title, cell(s.processes[0]), cell(s.processes[1]))
	}
	row("seconds; creates/s", func(samples []soakSample) string {
		first, last := samples[0], samples[len(samples)-1]
		seconds := (last.at - first.at).Seconds()
		return fmt.Sprintf("%.0f; %.0f", seconds, float64(last.creates-first.creates)/seconds)
	})
	row("a create, ms: median, p99, longest", func(samples []soakSample) string {
		waits := journal.waitsUntil(samples[0].started == s.processes[0][0].started, s.ended)
		if len(waits) == 0 {
			return "none"
		}
		return fmt.Sprintf("%.1f, %.1f, %.0f", waits[len(waits)/2], waits[len(waits)*99/100], waits[len(waits)-1])
	})
	for _, m := range soakMeasures() {
		row(m.name+": second fifth, last fifth, most", func(samples []soakSample) string {
			found, _ := m.judge(samples)
			return fmt.Sprintf("%.0f, %.0f, %.0f", found.early/m.unit, found.late/m.unit, found.most/m.unit)
		})
	}
	row("lines of the log that were dropped, and counted", func(samples []soakSample) string {
		return fmt.Sprintf("%.0f", samples[len(samples)-1].dropped)
	})
	return text.String()
}

// describeAnswers counts answers by their kind.
func describeAnswers(answers map[string]int) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(answers)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, answers[kind]))
	}
	return strings.Join(kinds, ", ")
}

// lasted is how long the load went on.
func (s *soak) lasted() time.Duration { return s.processes[1][len(s.processes[1])-1].at }

// waitsUntil returns how long creates took that were answered before a moment, or else from it on, in ms, sorted.
func (j *soakJournal) waitsUntil(isBefore bool, moment time.Duration) []float64 {
	var waits []float64
	for _, one := range j.waits {
		if one.at < moment == isBefore {
			waits = append(waits, milliseconds(one.wait))
		}
	}
	slices.Sort(waits)
	return waits
}

func milliseconds(wait time.Duration) float64 { return wait.Seconds() * 1000 }

// sizes tells what the server took.
func (s *soak) sizes() string {
	var wal int64
	var most, processor float64
	var requests int
	for _, samples := range s.processes {
		first, last := samples[0], samples[len(samples)-1]
		processor += last.processor - first.processor
		requests += last.requests - first.requests
		for _, one := range samples {
			wal, most = max(wal, one.wal), max(most, one.resident)
		}
	}
	database, _ := sizeOf(filepath.Join(s.server.folder, "data", "providerd.db"))
	stored, backedUp := len(s.load.journal.creates), len(s.backup.creates)
	return fmt.Sprintf("| what | measured |\n| --- | --- |\n"+
		"| database, bytes a provider | %d (%d providers in %.1f MiB) |\n"+
		"| its WAL at most, MiB | %.0f |\n"+
		"| a backup of %d providers | %.1f MiB in %.1f s |\n"+
		"| log, bytes a request | %d |\n"+
		"| resident memory, MiB | %.0f idle, at most %.0f under this load |\n"+
		"| processor time, s for 1,000 requests | %.2f |\n",
		int(database)/stored, stored, float64(database)/mib, float64(wal)/mib, backedUp, float64(s.backup.bytes)/mib,
		s.backup.took.Seconds(), s.log.bytes/s.log.requests, s.idle.resident/mib, most/mib, processor/float64(requests)*1000)
}

// plot draws the run over its time.
func (s *soak) plot() figures.Lines {
	length := (s.lasted() + time.Second).Truncate(time.Second)
	step := max(length/soakSamples, time.Second).Round(time.Second)
	waits := make([][]float64, length/step+1)
	for _, one := range s.load.journal.waits {
		if one.at < length {
			waits[one.at/step] = append(waits[one.at/step], milliseconds(one.wait))
		}
	}
	var rate, middle, slow []figures.Point
	for i, some := range waits[:length/step] {
		at := time.Duration(i)*step + step/2
		rate = append(rate, figures.Point{At: at, Value: float64(len(some)) / step.Seconds()})
		if slices.Sort(some); len(some) > 0 {
			middle = append(middle, figures.Point{At: at, Value: some[len(some)/2]})
			slow = append(slow, figures.Point{At: at, Value: some[len(some)*99/100]})
		}
	}
	measured := func(name string, number int) figures.Curve {
		m, one := soakMeasures()[number], figures.Curve{Name: name}
		for _, samples := range s.processes {
			var part []figures.Point
			for _, sample := range samples {
				part = append(part, figures.Point{At: sample.at, Value: m.of(sample) / m.unit})
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
