package serve

import (
	"bytes"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"example.com/providerd/cmd/providerd/console"
)

// serveLog is the server's log and its messages to the operator, both on standard error. Writing to it never blocks.
type serveLog struct {
	*slog.Logger
	// messages are logged, whatever the level of the log, if the log is JSON.
	messages *console.Messages
	output   *logWriter
}

func newServeLog(messages *console.Messages, format string, level slog.Level) *serveLog {
	if messages.IsQuiet {
		level = max(level, slog.LevelWarn)
	}
	handler := func(output io.Writer, level slog.Level) slog.Handler {
		options := &slog.HandlerOptions{Level: level}
		if format == console.FormatJSON {
			return slog.NewJSONHandler(console.JSONWriter{To: output}, options)
		}
		return slog.NewTextHandler(output, options)
	}
	writer := newLogWriter(messages.File, func(dropped int64) []byte {
		var line bytes.Buffer
		slog.New(handler(&line, slog.LevelWarn)).Warn("log lines dropped", slog.Int64("count", dropped))
		return line.Bytes()
	})
	log := &serveLog{slog.New(handler(writer, level)), &console.Messages{File: writer, IsQuiet: messages.IsQuiet}, writer}
	if format == console.FormatJSON {
		log.messages.Log = slog.New(handler(writer, slog.LevelDebug))
	}
	return log
}

const (
	// maxPendingLog is how many lines may be pending. Each has less than 1 KiB.
	maxPendingLog = 4096
	// closeLogTimeout is how long close waits for pending lines to be written.
	closeLogTimeout = time.Second
	// logInterval is the pause after a write. Batching saves most requests a system call and a thread wakeup.
	logInterval = 10 * time.Millisecond
)

// logWriter writes a line immediately if none was written in the last few milliseconds, and otherwise with the lines
// that follow. Its Write never blocks: if the output is stuck, slow or closed, lines are dropped and counted.
type logWriter struct {
	lines          chan []byte
	closing, ended chan struct{}
	dropped        atomic.Int64
}

// newLogWriter returns a new writer. The function note renders the line that reports how many lines were dropped.
func newLogWriter(output io.Writer, note func(dropped int64) []byte) *logWriter {
	writer := &logWriter{lines: make(chan []byte, maxPendingLog), closing: make(chan struct{}), ended: make(chan struct{})}
	go writer.run(output, note)
	return writer
}

// Write queues a line, or drops it if too many are pending. It never returns an error.
func (w *logWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

func (w *logWriter) run(output io.Writer, note func(dropped int64) []byte) {
	defer close(w.ended)
	var text []byte
	reported, isClosing := int64(0), false
	for !isClosing {
		text = text[:0]
		select {
		case line := <-w.lines:
			text = append(text, line...)
		case <-w.closing:
			isClosing = true
		}
		for range len(w.lines) {
			text = append(text, <-w.lines...)
		}
		lines, dropped := bytes.Count(text, []byte("\n")), w.dropped.Load()
		if dropped > reported {
			text = append(text, note(dropped-reported)...)
		}
		if len(text) == 0 {
			return
		}
		if _, err := output.Write(text); err != nil {
			w.dropped.Add(int64(lines))
		} else {
			reported = dropped
		}
		select {
		case <-time.After(logInterval):
		case <-w.closing:
		}
	}
}

// close waits for pending lines to be written, for closeLogTimeout at most. A stuck output leaks its goroutine.
func (w *logWriter) close() {
	close(w.closing)
	select {
	case <-w.ended:
	case <-time.After(closeLogTimeout):
	}
}
