package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"example.com/providerd/store"
)

type keyCommands struct {
	Rotate keyRotateCommand `cmd:"" help:"Add a key to the keyset and seal with it from now on, also on a running server."`
	Reseal keyResealCommand `cmd:"" help:"Seal with the newest key what older keys have sealed, also while the server runs."`
}

type keyRotateCommand struct {
	databaseFlag
}

// Run adds a key.
func (c *keyRotateCommand) Run(ctx context.Context) error {
	return c.withStore(ctx, func(database *store.Store) error {
		id, err := database.RotateKey(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr,
			"new secrets are sealed with key %d; \"providerd key reseal\" does the same for old ones\n", id)
		return nil
	})
}

type keyResealCommand struct {
	databaseFlag
}

// Run seals old secrets anew until all are done or it is interrupted.
func (c *keyResealCommand) Run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return c.withStore(ctx, func(database *store.Store) error {
		report := newProgress(os.Stderr, "secrets sealed anew")
		err := database.Reseal(ctx, report.update)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted after %d of %d secrets; run it again for the rest", report.done, report.total)
		}
		report.finish()
		return err
	})
}

// progress shows how far something is: a bar in a terminal, and otherwise a line every few seconds.
type progress struct {
	output      *os.File
	what        string
	bar         *progressbar.ProgressBar
	done, total int64
	shown       time.Time
}

// lineInterval is how far apart lines are where no bar can be shown.
const lineInterval = 5 * time.Second

func newProgress(output *os.File, what string) *progress {
	return &progress{output: output, what: what, shown: time.Now()}
}

func (p *progress) update(done, total int64) {
	p.done, p.total = done, total
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
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	p.line()
}
