package serve

import (
	"bytes"
	"io"
	"log/slog"

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
