package console

import (
	"errors"
	"fmt"
	"os"
)

// ErrReported ends a command whose operator was told why.
var ErrReported = errors.New("failed, and said why")

// ErrorPrefix begins a line that says why a command failed.
const ErrorPrefix = "providerd: "

// Messages are what a command tells people on standard error.
type Messages struct {
	File    *os.File
	IsQuiet bool
}

// Note tells what was done, or what to do next, unless people have asked for quiet.
func (m *Messages) Note(format string, values ...any) {
	if !m.IsQuiet {
		_, _ = fmt.Fprintf(m.File, format+"\n", values...)
	}
}

// Warn tells what may not be as people mean it.
func (m *Messages) Warn(format string, values ...any) {
	_, _ = fmt.Fprintln(m.File, Yellow.paint(m.File, "warning:")+" "+fmt.Sprintf(format, values...))
}

// Complain tells what is wrong.
func (m *Messages) Error(err error) {
	_, _ = fmt.Fprintln(m.File, Red.paint(m.File, ErrorPrefix)+err.Error())
}

// Progress shows how far something is.
func (m *Messages) Progress(what string) *Progress { return newProgress(m.File, what, m.IsQuiet) }

// At tells what is wrong or could be better at a place.
func (m *Messages) At(place, kind, id, detail string) {
	if kind != "" {
		place += ": " + kind
	}
	if id != "" {
		place += "/" + id
	}
	_, _ = fmt.Fprintf(m.File, "%s: %s\n", Printable(place), Printable(detail))
}
