//go:build slow

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// soakSample is what a server says of itself at one moment, and what it has been given to do.
type soakSample struct {
	at time.Duration
	// started tells processes apart: when this one did, in seconds.
	started                                            float64
	resident, heap, descriptors, goroutines, processor float64
	dropped                                            float64
	// wal is how long the WAL is, in bytes.
	wal int64
	// creates and requests were answered before.
	creates, requests int
}

func (s soakSample) createsSoFar() float64 { return float64(s.creates) }

// soakWatch asks a server again and again for its metrics. While there is none, it asks on.
type soakWatch struct {
	url, wal string
	journal  *soakJournal
	client   http.Client
	mutex    sync.Mutex
	samples  []soakSample
	stop     chan struct{}
	ended    chan struct{}
}

func newSoakWatch(server *operated, journal *soakJournal) *soakWatch {
	return &soakWatch{
		url: "http://" + server.ops + "/metrics", wal: filepath.Join(server.folder, "data", "providerd.db-wal"),
		journal: journal, client: http.Client{Transport: &http.Transport{}, Timeout: readyTimeout},
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
}

// run takes a sample each interval until the watch is stopped.
func (w *soakWatch) run(ctx context.Context, interval time.Duration) {
	defer close(w.ended)
	defer w.client.CloseIdleConnections()
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-ctx.Done():
			return
		case <-ticks.C:
			if one, err := w.sample(); err == nil {
				w.mutex.Lock()
				w.samples = append(w.samples, one)
				w.mutex.Unlock()
			}
		}
	}
}

// end stops the watch, and returns its samples by process.
func (w *soakWatch) end() (processes [][]soakSample) {
	close(w.stop)
	<-w.ended
	for i, one := range w.samples {
		if i == 0 || one.started != w.samples[i-1].started {
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
	return w.samples[len(w.samples)-1].dropped
}

// seen counts the samples of the process that was seen last.
func (w *soakWatch) seen() (count int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, one := range w.samples {
		if one.started == w.samples[len(w.samples)-1].started {
			count++
		}
	}
	return count
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
	series, err := parseSeries(string(text))
	if err != nil {
		return soakSample{}, err
	}
	one := soakSample{
		started: series["process_start_time_seconds"], resident: series["process_resident_memory_bytes"],
		// The collector runs when the heap is twice what lived at its last run.
		heap: series["go_memstats_next_gc_bytes"] / 2, descriptors: series["process_open_fds"],
		goroutines: series["go_goroutines"], processor: series["process_cpu_seconds_total"],
		dropped: series["providerd_log_lines_dropped_total"],
	}
	if info, err := os.Stat(w.wal); err == nil {
		one.wal = info.Size()
	}
	one.at, one.creates, one.requests = w.journal.soFar()
	return one, nil
}
