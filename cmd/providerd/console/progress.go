package console

import (
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// Progress displays progress: a bar in a terminal, and otherwise a line every 5 seconds.
type Progress struct {
	output      *os.File
	isQuiet     bool
	what        string
	bar         *progressbar.ProgressBar
	Done, Total int64
	shown       time.Time
}

// lineInterval is the time between two lines.
const lineInterval = 5 * time.Second

func newProgress(output *os.File, what string, isQuiet bool) *Progress {
	return &Progress{output: output, isQuiet: isQuiet, what: what, shown: time.Now()}
}

// Update shows that done of total is done.
func (p *Progress) Update(done, total int64) {
	p.Done, p.Total = done, total
	if p.isQuiet {
		return
	}
	if isatty.IsTerminal(p.output.Fd()) {
		p.draw()
		return
	}
	if time.Since(p.shown) >= lineInterval {
		p.line()
	}
}

func (p *Progress) draw() {
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(max(p.Total, 1), progressbar.OptionSetWriter(p.output),
			progressbar.OptionSetDescription(p.what), progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	_ = p.bar.Set64(p.Done)
}

func (p *Progress) line() {
	p.shown = time.Now()
	_, _ = fmt.Fprintf(p.output, "%d of %d %s\n", p.Done, p.Total, p.what)
}

// Finish replaces the bar by a line.
func (p *Progress) Finish() {
	p.Clear()
	if !p.isQuiet {
		p.line()
	}
}

// Clear removes the bar.
func (p *Progress) Clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
