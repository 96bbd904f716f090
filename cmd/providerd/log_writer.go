package main

import (
	"io"
	"sync"
)

// maxPendingLog is how many bytes of the log may wait for its output.
const maxPendingLog = 1 << 20

// logWriter gathers the lines that come while the output is busy and writes them together, which under load spares a
// system call for each request. It never waits for company.
type logWriter struct {
	output io.Writer
	mutex  sync.Mutex
	// changed is signalled when pending grows, when it is written, and when closed is set.
	changed *sync.Cond
	pending []byte
	closed  bool
	ended   chan struct{}
}

func newLogWriter(output io.Writer) *logWriter {
	writer := &logWriter{output: output, ended: make(chan struct{})}
	writer.changed = sync.NewCond(&writer.mutex)
	go writer.run()
	return writer
}

// Write hands lines over. It waits while the output takes none and too many are pending.
func (w *logWriter) Write(lines []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.pending) > maxPendingLog && !w.closed {
		w.changed.Wait()
	}
	w.pending = append(w.pending, lines...)
	if len(w.pending) == len(lines) {
		w.changed.Broadcast()
	}
	return len(lines), nil
}

func (w *logWriter) run() {
	defer close(w.ended)
	var lines []byte
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for !w.closed || len(w.pending) > 0 {
		if len(w.pending) == 0 {
			w.changed.Wait()
			continue
		}
		lines, w.pending = w.pending, lines[:0]
		w.mutex.Unlock()
		_, _ = w.output.Write(lines)
		w.mutex.Lock()
		w.changed.Broadcast()
	}
}

// close writes what is pending.
func (w *logWriter) close() {
	w.mutex.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.mutex.Unlock()
	<-w.ended
}
