package main

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxPendingLog is how many bytes of the log may wait for its output.
	maxPendingLog = 1 << 20
	// closeLogTimeout is how long the end of the program may wait for the output of the log.
	closeLogTimeout = time.Second
	// logInterval is how long lines wait after a write. It spares most requests a system call and a thread's wake-up.
	logInterval = 10 * time.Millisecond
)

// logWriter writes a line at once where none came just before, and otherwise together with those that follow in the
// next few milliseconds. Nobody waits for it: lines that the output does not take, because it is stuck, slow or gone,
// are dropped and counted.
type logWriter struct {
	output io.Writer
	// note renders the line that says how many are missing before it.
	note  func(dropped int) []byte
	mutex sync.Mutex
	// changed is signalled when pending grows, and when closed is set.
	changed *sync.Cond
	pending []byte
	// dropped counts the lines that are missing since the last note, and total all that ever were.
	dropped, total int
	closed         bool
	// hurry gets a value where the next write must not wait: pending is long, or closed is set.
	hurry chan struct{}
	ended chan struct{}
}

func newLogWriter(output io.Writer, note func(dropped int) []byte) *logWriter {
	writer := &logWriter{output: output, note: note, hurry: make(chan struct{}, 1), ended: make(chan struct{})}
	writer.changed = sync.NewCond(&writer.mutex)
	go writer.run()
	return writer
}

// Write hands whole lines over, or drops them where too many are pending. It returns no error.
func (w *logWriter) Write(lines []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.pending)+len(lines) > maxPendingLog {
		w.dropped += countLines(lines)
		w.total += countLines(lines)
		return len(lines), nil
	}
	w.pending = append(w.pending, lines...)
	w.changed.Signal()
	if len(w.pending) > maxPendingLog/4 {
		w.endPause()
	}
	return len(lines), nil
}

func (w *logWriter) endPause() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

func (w *logWriter) run() {
	defer close(w.ended)
	pause := time.NewTimer(logInterval)
	defer pause.Stop()
	var lines []byte
	for {
		var dropped int
		lines, dropped = w.take(lines[:0])
		if len(lines) == 0 {
			return
		}
		text := lines
		if dropped > 0 {
			text = append(text, w.note(dropped)...)
		}
		if written, err := w.output.Write(text); err != nil {
			w.drop(countLines(lines[min(written, len(lines)):]), dropped)
		}
		pause.Reset(logInterval)
		select {
		case <-pause.C:
		case <-w.hurry:
		}
	}
}

// take waits for lines and exchanges all that are pending for an empty buffer. It returns none when the writer is
// closed.
func (w *logWriter) take(empty []byte) (lines []byte, dropped int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.pending) == 0 && !w.closed {
		w.changed.Wait()
	}
	lines, dropped = w.pending, w.dropped
	w.pending, w.dropped = empty, 0
	return lines, dropped
}

// drop counts lines that the output refused, and those before them of which it refused the note.
func (w *logWriter) drop(lines, before int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.dropped += before + lines
	w.total += lines
}

// allDropped is how many lines were ever dropped.
func (w *logWriter) allDropped() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.total
}

// close writes what is pending, as far as the output takes it in time. An output that is stuck keeps its goroutine.
func (w *logWriter) close() {
	w.mutex.Lock()
	w.closed = true
	w.changed.Signal()
	w.endPause()
	w.mutex.Unlock()
	select {
	case <-w.ended:
	case <-time.After(closeLogTimeout):
	}
}

func countLines(text []byte) int { return bytes.Count(text, []byte("\n")) }
