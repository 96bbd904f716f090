package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"

	"example.com/providerd/cmd/providerd/console"
)

// serveLog is the server's log and its notices to the operator, both on standard error. Writing to it never blocks.
type serveLog struct {
	*slog.Logger
	output *logWriter
	// notices logs notices as records, regardless of the level of the log, if the log is JSON; otherwise it is nil.
	notices *slog.Logger
	isQuiet bool
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
	log := &serveLog{Logger: slog.New(handler(writer, level)), output: writer, isQuiet: messages.IsQuiet}
	if format == console.FormatJSON {
		log.notices = slog.New(handler(writer, slog.LevelDebug))
	}
	return log
}

// notify tells the operator something, whatever the level of the log. A notice of level info is suppressed by --quiet.
func (l *serveLog) notify(level slog.Level, format string, values ...any) {
	if l.isQuiet && level < slog.LevelWarn {
		return
	}
	text := fmt.Sprintf(format, values...)
	if l.notices != nil {
		l.notices.Log(context.Background(), level, text)
		return
	}
	prefixes := map[slog.Level]string{slog.LevelWarn: "warning: ", slog.LevelError: console.ErrorPrefix}
	_, _ = io.WriteString(l.output, prefixes[level]+console.Visible(text)+"\n")
}
