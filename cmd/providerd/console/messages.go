package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/mattn/go-isatty"
)

// ErrReported means that a command failed and already printed why.
var ErrReported = errors.New("failed, already reported")

// DiffersError means that nothing failed, but what was compared differs.
type DiffersError string

func (e DiffersError) Error() string { return string(e) }

// Messages prints messages for people on standard error or, if there is a log, logs them.
type Messages struct {
	File    io.Writer
	Log     *slog.Logger
	IsQuiet bool
	// Out is printed before each message, so that a file with both has them in order.
	Out *Output
}

// Note prints what was done or what to do next, unless the output is quiet.
func (m *Messages) Note(format string, values ...any) {
	if !m.IsQuiet {
		m.print(slog.LevelInfo, NoColor, "", fmt.Sprintf(format, values...))
	}
}

// Warn prints a warning.
func (m *Messages) Warn(format string, values ...any) {
	m.print(slog.LevelWarn, Yellow, "warning: ", fmt.Sprintf(format, values...))
}

// Error prints an error.
func (m *Messages) Error(err error) { m.print(slog.LevelError, Red, "providerd: ", err.Error()) }

// print prints a message, with any access token in it masked.
func (m *Messages) print(level slog.Level, color Color, prefix, text string) {
	text = maskTokens(text)
	if m.Log != nil {
		m.Log.Log(context.Background(), level, text)
		return
	}
	if m.Out != nil {
		// Later writes return the error.
		_ = m.Out.Lost()
	}
	_, _ = fmt.Fprintln(m.File, color.paint(m.File, maskTokens(prefix))+Visible(text))
}

// At prints a problem or a piece of advice at a place in a file.
func (m *Messages) At(place, kind, id, detail string) {
	if kind != "" {
		place += ": " + kind
	}
	if id != "" {
		place += "/" + id
	}
	m.print(slog.LevelInfo, NoColor, Printable(place)+": ", Printable(detail))
}

// Progress reports how much is done in a line every 5 seconds, and at the end.
type Progress struct {
	messages    *Messages
	what        string
	Done, Total int64
	reported    time.Time
}

// Progress returns a new Progress of something.
func (m *Messages) Progress(what string) *Progress {
	return &Progress{messages: m, what: what, reported: time.Now()}
}

// Update notes that done of total is done.
func (p *Progress) Update(done, total int64) {
	const interval = 5 * time.Second
	if p.Done, p.Total = done, total; time.Since(p.reported) >= interval {
		p.Report()
	}
}

// Report reports what is done.
func (p *Progress) Report() {
	p.reported = time.Now()
	p.messages.Note("%d of %d %s", p.Done, p.Total, p.what)
}

// Color is the parameter that sets a color in the terminal control sequence SGR (ECMA-48, section 8.3.117).
type Color int

// The colors in use. NoColor leaves a string unchanged.
const (
	NoColor Color = 0
	Red     Color = 31
	Green   Color = 32
	Yellow  Color = 33
)

// paint colors a string if output is a terminal that shows colors and NO_COLOR is not set (no-color.org).
func (c Color) paint(output io.Writer, text string) string {
	file, isFile := output.(*os.File)
	isPlain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	if c == NoColor || isPlain || !isFile || !isatty.IsTerminal(file.Fd()) {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}
