// Package audit prints the event log line by line, and checks it against the records of the database.
//
// Start with Log, which prints lines. VerifyCommand compares lines or heads that were kept with the database, and
// HeadCommand prints heads.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/escape"
	"example.com/providerd/store"
	"example.com/providerd/store/durable"
)

const (
	// pollInterval is the time between two queries for new events.
	pollInterval = time.Second
	// noteInterval is how long open transactions may delay events before that is reported.
	noteInterval = time.Minute
	// maxUnprinted limits the lines in memory in bytes. They are written at once, so that a kill rarely cuts one in half.
	maxUnprinted = 64 << 10
)

// Log prints events as lines of JSON, each after all that were committed with lower keys.
type Log struct {
	// Follow makes it wait for more events until SIGINT or SIGTERM.
	Follow bool
	// CursorFile has the cursor of the last printed line, and is updated after each flush; "" for none.
	CursorFile string
	// After is the cursor to start after if there is no CursorFile, and then that of the last printed line.
	After store.LogCursor
	// Out gets the lines, and Messages why they are late or incomplete.
	Out      *console.Output
	Messages *console.Messages

	// unprinted are the lines after that, and next is their cursor.
	unprinted []byte
	next      store.LogCursor
}

// line is a line of output.
type line struct {
	store.Event
	// Cursor is the position after the line.
	Cursor store.LogCursor `json:"cursor"`
}

// Print prints the events. It returns an error if the cursor is after the end of the log, because an older backup was
// restored, and store.ErrUnavailable unless it follows.
func (l Log) Print(ctx context.Context, database *store.Store) error {
	if l.CursorFile != "" {
		if err := l.readCursor(); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program even if nobody reads the lines.
	defer context.AfterFunc(ctx, stop)()
	if !l.Follow {
		return l.printNew(ctx, database)
	}
	return l.follow(ctx, database)
}

// follow prints events until the context ends.
func (l *Log) follow(ctx context.Context, database *store.Store) error {
	for {
		err := l.printNew(ctx, database)
		switch {
		case errors.Is(err, console.ErrPrint):
			return err
		case ctx.Err() != nil:
			return nil //nolint:nilerr // A signal has ended it.
		case errors.Is(err, store.ErrUnavailable):
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

// printNew prints the events that were committed since the cursor. After an error, it can be called again.
func (l *Log) printNew(ctx context.Context, database *store.Store) error {
	l.unprinted, l.next = l.unprinted[:0], l.After
	end, err := l.settled(ctx, database)
	if err != nil {
		return err
	}
	for i, key := range end.LogCursor {
		if l.After[i] > key {
			return fmt.Errorf("the event log ends before cursor %s; if an older backup was restored, keep the old lines and "+
				"start again without a cursor", textOf(l.After))
		}
	}
	for event, err := range database.Log(ctx, l.After, end.LogCursor) {
		if err != nil {
			return err
		}
		if err := l.add(event); err != nil {
			return err
		}
		if len(l.unprinted) < maxUnprinted {
			continue
		}
		if err := l.flush(ctx, end); err != nil {
			return err
		}
	}
	return l.flush(ctx, end)
}

// settled returns the end of the log, and says so if it has to wait long.
func (l *Log) settled(ctx context.Context, database *store.Store) (store.LogEnd, error) {
	note := time.AfterFunc(noteInterval, func() {
		l.Messages.Warn("a transaction has been open for %v; waiting for it before events are printed", noteInterval)
	})
	defer note.Stop()
	return database.Settled(ctx)
}

// add adds the line of an event.
func (l *Log) add(event store.Event) error {
	if event.Damaged != nil {
		l.Messages.Warn("%v; its leaf is not known", event.Damaged)
	}
	l.next[event.Row.Table] = event.Row.Key
	text, err := json.Marshal(line{event, l.next})
	if err != nil {
		return fmt.Errorf("render event: %w", err)
	}
	l.unprinted = append(append(l.unprinted, escape.JSON(text)...), '\n')
	return nil
}

// flush prints the lines and then stores the cursor, so that a line can be printed twice but never be missing.
func (l *Log) flush(ctx context.Context, end store.LogEnd) error {
	if len(l.unprinted) == 0 {
		return nil
	}
	if err := end.Confirm(ctx); err != nil {
		return err
	}
	if _, err := l.Out.Write(l.unprinted); err != nil {
		return err
	}
	l.unprinted, l.After = l.unprinted[:0], l.next
	if err := l.Out.Flush(); err != nil || l.CursorFile == "" {
		return err
	}
	owner, err := durable.OwnerFor(l.CursorFile)
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	if err := durable.WriteFile(l.CursorFile, []byte(textOf(l.After)+"\n"), owner); err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	return nil
}

// readCursor reads the cursor file, if there is one.
func (l *Log) readCursor() error {
	text, err := durable.ReadSmallFile(l.CursorFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = l.After.UnmarshalText([]byte(strings.TrimSpace(string(text))))
	}
	if err != nil {
		return fmt.Errorf("--cursor-file: %s: %w", l.CursorFile, err)
	}
	return nil
}

func textOf(cursor store.LogCursor) string {
	text, _ := cursor.MarshalText()
	return string(text)
}
