// Package audit prints the log of events line by line, and compares kept lines with the database.
//
// Start with Log, which prints lines. VerifyCommand compares them.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/escape"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
)

// pollInterval is the time between two queries for new events.
const pollInterval = time.Second

// Log prints events as lines of JSON, in the order of their ids: none with a lower id is committed later.
type Log struct {
	// Filter selects events. Only lines without a filter have digests.
	Filter store.EventFilter
	// Follow makes it wait for more events until SIGINT or SIGTERM.
	Follow bool
	// CursorFile has the last printed event; "" for none. One process at a time can use it.
	CursorFile string
	// After is where to start without a CursorFile. It advances with what is printed.
	After store.Cursor
	// Out gets the lines, and Messages why they are late or incomplete.
	Out      *console.Output
	Messages *console.Messages

	// cursor is nil without a CursorFile.
	cursor *cursor
	// unreadable is the number of lines of records that cannot be read.
	unreadable int
}

// Print prints the events. It returns store.ErrLogEnded if the cursor is after the end of the log, store.ErrReplaced,
// store.ErrUnavailable unless it follows, or an error if a record could not be read.
func (l *Log) Print(ctx context.Context, from *store.Store) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program even if nobody reads the lines.
	defer context.AfterFunc(ctx, stop)()
	if err := l.withCursor(func() error { return l.print(ctx, from) }); err != nil {
		return err
	}
	if l.unreadable > 0 {
		lines := console.Count(l.unreadable, "line has", "lines have")
		return errors.New(lines + " no digest, because a record cannot be read")
	}
	return nil
}

// withCursor calls work with the cursor of the file, which it locks.
func (l *Log) withCursor(work func() error) (err error) {
	if l.CursorFile == "" {
		return work()
	}
	if l.cursor, err = openCursor(l.CursorFile); err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	defer func() { err = errors.Join(err, l.cursor.Close()) }()
	l.After = l.cursor.last
	return work()
}

// print prints the events and, if it follows, later ones until the context ends.
func (l *Log) print(ctx context.Context, from *store.Store) error {
	for {
		err := l.printNew(ctx, from)
		isUnavailable := errors.Is(err, store.ErrUnavailable)
		switch {
		case !l.Follow:
			return err
		case ctx.Err() != nil && (err == nil || isUnavailable || errors.Is(err, context.Canceled)):
			return nil
		case isUnavailable && !isLasting(err):
			l.Messages.Warn("%v; trying again", err)
		case err != nil:
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// isLasting reports whether the database will not be available again to this program.
func isLasting(err error) bool {
	for _, lasting := range []error{store.ErrReplaced, database.ErrNewer, database.ErrCorrupt} {
		if errors.Is(err, lasting) {
			return true
		}
	}
	return false
}

// printNew prints the events that were committed since the cursor. After an error, it can be called again.
func (l *Log) printNew(ctx context.Context, from *store.Store) error {
	for page, err := range from.Log(ctx, l.Filter, l.After, waitingFor(l.Messages)) {
		if errors.Is(err, store.ErrLogEnded) {
			return fmt.Errorf("%w; if an older backup was restored, keep the old lines and start again without a cursor", err)
		}
		if err != nil {
			return err
		}
		if err := l.printPage(page); err != nil {
			return err
		}
	}
	return nil
}

// waitingFor returns a function that warns of a transaction that holds up the log.
func waitingFor(messages *console.Messages) func(transaction string) {
	return func(transaction string) {
		messages.Warn("waiting for an open transaction, which may still add events: %s", transaction)
	}
}

// printPage prints lines and then stores the cursor, so that a line can be printed twice but never be missing.
func (l *Log) printPage(page store.LogPage) error {
	for _, entry := range page.Entries {
		if entry.Damaged != nil {
			l.unreadable++
			l.Messages.Error(entry.Damaged)
		}
		text, err := json.Marshal(entry)
		if err != nil {
			return fmt.Errorf("render event: %w", err)
		}
		if err := l.Out.Line(string(escape.JSON(text))); err != nil {
			return err
		}
	}
	l.After = page.End
	if len(page.Entries) == 0 {
		return nil
	}
	if err := l.Out.Sync(); err != nil || l.cursor == nil {
		return err
	}
	last := page.Entries[len(page.Entries)-1]
	if err := l.cursor.store(store.Cursor{ID: last.ID, At: last.At}); err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	return nil
}
