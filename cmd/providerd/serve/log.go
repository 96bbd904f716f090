package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/escape"
)

// serveLog is what a server says on standard error: its log, and sentences to its operator. Neither holds it up.
type serveLog struct {
	*slog.Logger
	output *logWriter
	// records gets the sentences where every line is for programs, whatever the level of the log; nil otherwise.
	records *slog.Logger
	isQuiet bool
}

func newServeLog(say *console.Messages, format string, level slog.Level) *serveLog {
	if say.IsQuiet {
		level = max(level, slog.LevelWarn)
	}
	handler := func(output io.Writer, level slog.Level) slog.Handler {
		options := &slog.HandlerOptions{Level: level}
		if format == console.FormatJSON {
			return slog.NewJSONHandler(escape.JSONWriter{To: output}, options)
		}
		return slog.NewTextHandler(output, options)
	}
	writer := newLogWriter(say.File, func(dropped int) []byte {
		var line bytes.Buffer
		slog.New(handler(&line, slog.LevelWarn)).Warn("log lines dropped", slog.Int("count", dropped))
		return line.Bytes()
	})
	log := &serveLog{Logger: slog.New(handler(writer, level)), output: writer, isQuiet: say.IsQuiet}
	if format == console.FormatJSON {
		log.records = slog.New(handler(writer, slog.LevelDebug))
	}
	return log
}

// say tells the operator a sentence: something good to know (info), a danger (warn), or why the server ends (error).
func (l *serveLog) say(level slog.Level, sentence string) {
	if l.isQuiet && level < slog.LevelWarn {
		return
	}
	if l.records != nil {
		l.records.Log(context.Background(), level, sentence)
		return
	}
	prefixes := map[slog.Level]string{slog.LevelWarn: "warning: ", slog.LevelError: console.Complaint}
	_, _ = io.WriteString(l.output, prefixes[level]+sentence+"\n")
}
