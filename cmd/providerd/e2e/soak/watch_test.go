//go:build slow

package soak_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"example.com/providerd/cmd/bench/figures"
	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// soakSample is the metrics of a server at one moment by series, and figures of the test by name.
type soakSample map[string]float64

// The series that identifies a process, and those that are reported.
const (
	startedSeries   = "process_start_time_seconds"
	residentSeries  = "process_resident_memory_bytes"
	processorSeries = "process_cpu_seconds_total"
	droppedSeries   = "providerd_log_lines_dropped_total"
)

// watch takes a sample each interval, also through a restart, until the returned load is stopped.
func (s *soak) watch(interval time.Duration) *providerdtest.Load {
	return providerdtest.StartLoad(1, func(_, _ int) bool {
		<-time.After(interval)
		if sample, err := s.sample(); err == nil {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.samples = append(s.samples, sample)
		}
		return true
	})
}

func (s *soak) processes() (processes [][]soakSample) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, sample := range s.samples {
		if i == 0 || sample[startedSeries] != s.samples[i-1][startedSeries] {
			processes = append(processes, nil)
		}
		last := len(processes) - 1
		processes[last] = append(processes[last], sample)
	}
	return processes
}

func (s *soak) dropped() float64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.samples) == 0 {
		return 0
	}
	return s.samples[len(s.samples)-1][droppedSeries]
}

func (s *soak) sample() (soakSample, error) {
	ops, client := &providerdtest.Server{URL: "http://" + s.ops}, &http.Client{Timeout: processtest.Timeout}
	status, text, err := ops.Do(client, http.MethodGet, "/metrics", "", "", nil)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("status is %d, %w", status, err)
	}
	values, err := providerdtest.ParseSeries(text)
	if err != nil {
		return nil, err
	}
	// The next collection starts when the heap is twice the live heap after the last one.
	values["heap"] = values["go_memstats_next_gc_bytes"] / 2
	values["wal"] = s.sizeOf("data/providerd.db-wal")
	creates, _ := s.Counts()
	values["creates"], values["requests"] = float64(creates), float64(s.requests.Load())
	values["seconds"] = time.Since(s.Started).Seconds()
	return values, nil
}

func (s *soak) sizeOf(name string) float64 {
	info, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

// measure is a figure of a process that must not grow with the number of creates.
type measure struct {
	name, value string
	// leak is the growth per create that must be detected, and slack is how much the figure may vary without a leak.
	leak, slack float64
}

const mib = 1 << 20

func soakMeasures() []measure {
	return []measure{
		{"resident memory", residentSeries, 1 << 10, 16 * mib},
		{"live heap of Go", "heap", 1 << 10, 8 * mib},
		{"descriptors", "process_open_fds", 0.01, soakCallers},
		{"goroutines", "go_goroutines", 0.01, 2 * soakCallers},
	}
}

// growth has the median of a figure in the second fifth of a process's time, after the warm-up, the median in the last
// fifth, the maximum, and the allowed difference of the medians.
type growth struct{ early, late, maximum, allowed float64 }

func (g growth) isFlat() bool { return g.late-g.early <= g.allowed }

// minSamples is enough for five parts of several samples each.
const minSamples = 15

// judge compares parts of the samples of a process. It allows half of the growth that a leak would cause.
func (m measure) judge(samples []soakSample) growth {
	part := len(samples) / 5
	early, late := samples[part:2*part], samples[len(samples)-part:]
	creates := medianOf(late, "creates") - medianOf(early, "creates")
	return growth{
		early: medianOf(early, m.value), late: medianOf(late, m.value), maximum: slices.Max(valuesOf(samples, m.value)),
		allowed: max(m.slack, creates*m.leak/2),
	}
}

func medianOf(samples []soakSample, value string) float64 {
	values := slices.Sorted(slices.Values(valuesOf(samples, value)))
	return values[len(values)/2]
}

func valuesOf(samples []soakSample, value string) (values []float64) {
	for _, sample := range samples {
		values = append(values, sample[value])
	}
	return values
}

// minJudgedTime is how many seconds a process must run to be judged: after the restart, callers need time to reconnect.
const minJudgedTime = 10

// report checks that nothing grew, and writes the resources that the server used in a whole run.
func (s *soak) report(t *testing.T, isWhole bool) {
	processes, processor, requests := s.processes(), 0.0, 0.0
	processtest.Require(t, len(processes) == 2, "sampled %d processes, want 2", len(processes))
	for i, samples := range processes {
		first, last := samples[0], samples[len(samples)-1]
		processor += last[processorSeries] - first[processorSeries]
		requests += last["requests"] - first["requests"]
		// Memory always grows until the first garbage collection under load.
		const collections = "go_gc_duration_seconds_count"
		warm := slices.IndexFunc(samples, func(sample soakSample) bool { return sample[collections] > first[collections] })
		samples = samples[max(warm, 0):]
		if last["seconds"]-samples[0]["seconds"] < minJudgedTime {
			continue
		}
		for _, m := range soakMeasures() {
			found := m.judge(samples)
			processtest.Expect(t, found.isFlat(), "process %d: %s: %+v", i+1, m.name, found)
		}
	}
	all, database, stored := slices.Concat(processes...), s.sizeOf("data/providerd.db"), len(s.Creates)
	sizes := fmt.Sprintf("| resource | measured |\n| --- | --- |\n"+
		"| database, bytes per provider | %d (%d providers in %.1f MiB) |\n"+
		"| largest WAL, MiB | %.0f |\n"+
		"| backup of %d providers | %.1f MiB in %.1f s |\n"+
		"| log, bytes per request | %d |\n"+
		"| resident memory, MiB | %.0f idle, at most %.0f under this load |\n"+
		"| CPU time, s per 1,000 requests | %.2f |\n",
		int(database)/stored, stored, database/mib, slices.Max(valuesOf(all, "wal"))/mib,
		len(s.backedUp), s.sizeOf("backup.db")/mib, s.backupTook.Seconds(), s.firstLog.Bytes/s.firstLog.Requests,
		s.idle[residentSeries]/mib, slices.Max(valuesOf(all, residentSeries))/mib, processor/requests*1000)
	t.Log("\n" + sizes)
	if isWhole && !t.Failed() {
		manual := providerdtest.Path(t, "cmd/providerd/manual/configuration.md")
		processtest.Must(t, figures.Put(manual, "sizes: make proof PROOF=soak writes them", sizes))
	}
}
