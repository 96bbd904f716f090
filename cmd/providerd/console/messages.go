package console

import (
	"errors"
	"fmt"
	"os"
)

// ErrReported means that a command failed and already printed why.
var ErrReported = errors.New("failed, already reported")

// ErrorPrefix begins the message of an error.
const ErrorPrefix = "providerd: "

// Messages prints messages for people on standard error.
type Messages struct {
	File    *os.File
	IsQuiet bool
}

// Note prints what was done or what to do next, unless the output is quiet.
func (m *Messages) Note(format string, values ...any) {
	if !m.IsQuiet {
		_, _ = fmt.Fprintln(m.File, Visible(fmt.Sprintf(format, values...)))
	}
}

// Warn prints a warning.
func (m *Messages) Warn(format string, values ...any) {
	_, _ = fmt.Fprintln(m.File, Yellow.paint(m.File, "warning:")+" "+Visible(fmt.Sprintf(format, values...)))
}

// Error prints an error.
func (m *Messages) Error(err error) {
	_, _ = fmt.Fprintln(m.File, Red.paint(m.File, ErrorPrefix)+Visible(err.Error()))
}

// At prints a problem or a piece of advice at a place in a file.
func (m *Messages) At(place, kind, id, detail string) {
	if kind != "" {
		place += ": " + kind
	}
	if id != "" {
		place += "/" + id
	}
	_, _ = fmt.Fprintf(m.File, "%s: %s\n", Printable(place), Printable(detail))
}
