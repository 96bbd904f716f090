package command

import (
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// progress shows how far something is: a bar in a terminal, and otherwise a line every few seconds.
type progress struct {
	output      *os.File
	isQuiet     bool
	what        string
	bar         *progressbar.ProgressBar
	done, total int64
	shown       time.Time
}

// lineInterval is how far apart lines are where no bar can be shown.
const lineInterval = 5 * time.Second

func newProgress(output *os.File, what string, isQuiet bool) *progress {
	return &progress{output: output, isQuiet: isQuiet, what: what, shown: time.Now()}
}

func (p *progress) update(done, total int64) {
	p.done, p.total = done, total
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

func (p *progress) draw() {
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(max(p.total, 1), progressbar.OptionSetWriter(p.output),
			progressbar.OptionSetDescription(p.what), progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	_ = p.bar.Set64(p.done)
}

func (p *progress) line() {
	p.shown = time.Now()
	_, _ = fmt.Fprintf(p.output, "%d of %d %s\n", p.done, p.total, p.what)
}

// finish leaves one line, whatever was shown before.
func (p *progress) finish() {
	p.clear()
	if !p.isQuiet {
		p.line()
	}
}

// clear takes a bar away.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
