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
)

// soakSample is what a server says of itself at one moment, and what was seen of it.
type soakSample struct {
	at time.Duration
	// values are by the series, and those of sample by their name.
	values map[string]float64
}

// Series that tell processes apart, and those that are reported.
const (
	startedSeries   = "process_start_time_seconds"
	residentSeries  = "process_resident_memory_bytes"
	processorSeries = "process_cpu_seconds_total"
	droppedSeries   = "providerd_log_lines_dropped_total"
)

// soakWatch asks a server again and again for its metrics. While there is none, it asks on.
type soakWatch struct {
	url, wal string
	journal  *soakJournal
	client   http.Client
	mutex    sync.Mutex
	samples  []soakSample
}

func newSoakWatch(server *operated, journal *soakJournal) *soakWatch {
	return &soakWatch{
		url: "http://" + server.ops + "/metrics", wal: filepath.Join(server.folder, "data", "providerd.db-wal"),
		journal: journal, client: http.Client{Transport: &http.Transport{}, Timeout: providerdtest.ReadyTimeout},
	}
}

// start takes a sample each interval until the watch is ended.
func (w *soakWatch) start(interval time.Duration) *providerdtest.Load {
	return providerdtest.StartLoad(1, func(_, _ int) bool {
		<-time.After(interval)
		if one, err := w.sample(); err == nil {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			w.samples = append(w.samples, one)
		}
		return true
	})
}

// processes returns the samples by process.
func (w *soakWatch) processes() (processes [][]soakSample) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for i, one := range w.samples {
		if i == 0 || one.values[startedSeries] != w.samples[i-1].values[startedSeries] {
			processes = append(processes, nil)
		}
		last := len(processes) - 1
		processes[last] = append(processes[last], one)
	}
	return processes
}

// dropped is how many lines of the log the server of now lacks.
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
	// The collector runs when the heap is twice what lived at its last run.
	values["heap"] = values["go_memstats_next_gc_bytes"] / 2
	if info, err := os.Stat(w.wal); err == nil {
		values["wal"] = float64(info.Size())
	}
	creates, requests := w.journal.soFar()
	values["creates"], values["requests"] = float64(creates), float64(requests)
	return soakSample{at: time.Since(w.journal.Started), values: values}, nil
}
