package serve

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
	note    func(dropped int) []byte
	mutex   sync.Mutex
	pending []byte
	// dropped counts the lines that are missing since the last note, and total all that ever were.
	dropped, total int
	// changed has a value when pending has grown.
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

// writePending exchanges the lines that are pending for an empty buffer, writes them and returns theirs.
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
	close(w.closing)
	select {
	case <-w.ended:
	case <-time.After(closeLogTimeout):
	}
}

func countLines(text []byte) int { return bytes.Count(text, []byte("\n")) }
