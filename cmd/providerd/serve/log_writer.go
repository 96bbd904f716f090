package serve

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxPendingLog is how many bytes of the log may be pending.
	maxPendingLog = 1 << 20
	// closeLogTimeout is how long close waits for pending lines to be written.
	closeLogTimeout = time.Second
	// logInterval is the pause after a write. Batching saves most requests a system call and a thread wakeup.
	logInterval = 10 * time.Millisecond
)

// logWriter writes a line at once if none was written in the last few milliseconds, and otherwise with the lines that
// follow. Its Write never blocks: if the output is stuck, slow or closed, lines are dropped and counted.
type logWriter struct {
	output io.Writer
	// note renders the line that reports how many lines were dropped.
	note    func(dropped int) []byte
	mutex   sync.Mutex
	pending []byte
	// dropped counts the lines dropped since the last note, and total all of them.
	dropped, total int
	// changed has a value if pending has grown.
	changed        chan struct{}
	closing, ended chan struct{}
}

func newLogWriter(output io.Writer, note func(dropped int) []byte) *logWriter {
	writer := &logWriter{
		output: output, note: note,
		changed: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	go writer.run()
	return writer
}

// Write queues whole lines, or drops them if too many are pending. It never returns an error.
func (w *logWriter) Write(lines []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.pending)+len(lines) > maxPendingLog {
		w.dropped += countLines(lines)
		w.total += countLines(lines)
		return len(lines), nil
	}
	w.pending = append(w.pending, lines...)
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return len(lines), nil
}

func (w *logWriter) run() {
	defer close(w.ended)
	var buffer []byte
	for {
		select {
		case <-w.changed:
			buffer = w.writePending(buffer[:0])
		case <-w.closing:
			w.writePending(buffer[:0])
			return
		}
		select {
		case <-time.After(logInterval):
		case <-w.closing:
		}
	}
}

// writePending swaps the pending lines for an empty buffer, writes them, and returns their buffer for reuse.
func (w *logWriter) writePending(empty []byte) []byte {
	w.mutex.Lock()
	lines, dropped := w.pending, w.dropped
	w.pending, w.dropped = empty, 0
	w.mutex.Unlock()
	text := lines
	if dropped > 0 {
		text = append(text, w.note(dropped)...)
	}
	if len(text) == 0 {
		return lines
	}
	if written, err := w.output.Write(text); err != nil {
		w.drop(countLines(lines[min(written, len(lines)):]), dropped)
	}
	return lines
}

// drop counts lines that were not written, and earlier ones whose note was not written.
func (w *logWriter) drop(lines, unreported int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.dropped += unreported + lines
	w.total += lines
}

func (w *logWriter) totalDropped() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.total
}

// close waits for pending lines to be written, for closeLogTimeout at most. A stuck output leaks its goroutine.
func (w *logWriter) close() {
	close(w.closing)
	select {
	case <-w.ended:
	case <-time.After(closeLogTimeout):
	}
}

func countLines(text []byte) int { return bytes.Count(text, []byte("\n")) }
