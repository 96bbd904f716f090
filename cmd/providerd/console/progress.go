package console

import (
	"fmt"
	"time"

	"github.com/mattn/go-isatty"
)

// Progress displays how much is done: in a terminal all the time, and otherwise in a line every 5 seconds.
type Progress struct {
	*Messages
	what        string
	Done, Total int64
	shown       time.Time
}

// Progress returns a new display of the progress of something.
func (m *Messages) Progress(what string) *Progress {
	return &Progress{Messages: m, what: what, shown: time.Now()}
}

// Step finishes the display of another step, if there was one.
func (p *Progress) Step(what string) {
	if p.what != "" && p.what != what {
		p.Finish()
	}
	p.what = what
}

// Update shows that done of total is done.
func (p *Progress) Update(done, total int64) {
	const redraw, lines = 100 * time.Millisecond, 5 * time.Second
	p.Done, p.Total = done, total
	if isatty.IsTerminal(p.File.Fd()) {
		p.print(redraw, "\r")
	} else {
		p.print(lines, "\n")
	}
}

// Finish shows the last state in a line of its own.
func (p *Progress) Finish() {
	p.Clear()
	p.print(0, "\n")
}

func (p *Progress) print(interval time.Duration, end string) {
	if !p.IsQuiet && time.Since(p.shown) >= interval {
		p.shown = time.Now()
		_, _ = fmt.Fprintf(p.File, "%d of %d %s%s", p.Done, p.Total, p.what, end)
	}
}

// Clear removes what a terminal shows.
func (p *Progress) Clear() {
	if !p.IsQuiet && isatty.IsTerminal(p.File.Fd()) {
		_, _ = fmt.Fprint(p.File, "\x1b[K")
	}
}
