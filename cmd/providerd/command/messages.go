package command

import (
	"errors"
	"fmt"
	"os"
)

// errSaid ends a command whose operator was told why.
var errSaid = errors.New("failed, and said why")

// complaint begins a line that says why a command failed.
const complaint = "providerd: "

// messages are what a command tells people on standard error.
type messages struct {
	file    *os.File
	isQuiet bool
}

// note tells what was done, or what to do next, unless people have asked for quiet.
func (m *messages) note(format string, values ...any) {
	if !m.isQuiet {
		_, _ = fmt.Fprintf(m.file, format+"\n", values...)
	}
}

// warn tells what may not be as people mean it.
func (m *messages) warn(format string, values ...any) {
	_, _ = fmt.Fprintln(m.file, yellow.paint(m.file, "warning:")+" "+fmt.Sprintf(format, values...))
}

// complain tells what is wrong.
func (m *messages) complain(err error) {
	_, _ = fmt.Fprintln(m.file, red.paint(m.file, complaint)+err.Error())
}

// progress shows how far something is.
func (m *messages) progress(what string) *progress { return newProgress(m.file, what, m.isQuiet) }

// at tells what is wrong or could be better at a place.
func (m *messages) at(place, kind, id, detail string) {
	if kind != "" {
		place += ": " + kind
	}
	if id != "" {
		place += "/" + id
	}
	_, _ = fmt.Fprintf(m.file, "%s: %s\n", printable(place), printable(detail))
}
