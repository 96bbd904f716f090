//go:build slow

package soak_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// soakSample is the metrics of a server at one moment, and figures of the test.
type soakSample struct {
	at time.Duration
	// values are by series, and those that sample adds by name.
	values map[string]float64
}

// The series that identifies a process, and those that are reported.
const (
	startedSeries   = "process_start_time_seconds"
	residentSeries  = "process_resident_memory_bytes"
	processorSeries = "process_cpu_seconds_total"
	droppedSeries   = "providerd_log_lines_dropped_total"
)

// soakWatch samples the metrics of a server periodically, also through a restart.
type soakWatch struct {
	url, wal string
	journal  *soakJournal
	client   http.Client
	mutex    sync.Mutex
	samples  []soakSample
}

func newSoakWatch(server *service, journal *soakJournal) *soakWatch {
	return &soakWatch{
		url: "http://" + server.ops + "/metrics", wal: filepath.Join(server.dir, "data", "providerd.db-wal"),
		journal: journal, client: http.Client{Transport: &http.Transport{}, Timeout: processtest.Timeout},
	}
}

// start takes a sample each interval until the returned load is stopped.
func (w *soakWatch) start(interval time.Duration) *providerdtest.Load {
	return providerdtest.StartLoad(1, func(_, _ int) bool {
		<-time.After(interval)
		if sample, err := w.sample(); err == nil {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			w.samples = append(w.samples, sample)
		}
		return true
	})
}

// processes returns the samples by process.
func (w *soakWatch) processes() (processes [][]soakSample) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for i, sample := range w.samples {
		if i == 0 || sample.values[startedSeries] != w.samples[i-1].values[startedSeries] {
			processes = append(processes, nil)
		}
		last := len(processes) - 1
		processes[last] = append(processes[last], sample)
	}
	return processes
}

// dropped returns how many log lines the current process has dropped.
func (w *soakWatch) dropped() float64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.samples) == 0 {
		return 0
	}
	return w.samples[len(w.samples)-1].values[droppedSeries]
}

func (w *soakWatch) sample() (soakSample, error) {
	response, err := w.client.Get(w.url)
	if err != nil {
		return soakSample{}, err
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return soakSample{}, err
	}
	if response.StatusCode != http.StatusOK {
		return soakSample{}, fmt.Errorf("status is %d", response.StatusCode)
	}
	values, err := providerdtest.ParseSeries(string(text))
	if err != nil {
		return soakSample{}, err
	}
	// The next collection starts when the heap is twice the live heap after the last one.
	values["heap"] = values["go_memstats_next_gc_bytes"] / 2
	if info, err := os.Stat(w.wal); err == nil {
		values["wal"] = float64(info.Size())
	}
	creates, requests := w.journal.soFar()
	values["creates"], values["requests"] = float64(creates), float64(requests)
	return soakSample{at: time.Since(w.journal.Started), values: values}, nil
}
