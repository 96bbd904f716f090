package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
)

// pollInterval is the time between two queries for new events.
const pollInterval = time.Second

// eventLog prints events as lines of JSON, in the order of their ids: none with a lower id is committed later.
type eventLog struct {
	*auditCommand
	out      *console.Output
	messages *console.Messages
	// after is the last printed event.
	after store.Cursor
	// cursor is the file that keeps it, or nil.
	cursor *cursor
	// unreadable is the number of lines of records that cannot be read.
	unreadable int
}

// print prints the events and, if it follows, later ones until a signal arrives.
func (l *eventLog) print(ctx context.Context, from *store.Store) (err error) {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	// A second signal ends the program even if no one reads the lines.
	defer context.AfterFunc(ctx, stop)()
	if l.CursorFile != "" {
		if l.cursor, err = openCursor(l.CursorFile); err != nil {
			return fmt.Errorf("--cursor-file: %w", err)
		}
		defer func() { err = errors.Join(err, l.cursor.Close()) }()
		l.after = l.cursor.last
	}
	if err := l.follow(ctx, from); err != nil {
		return err
	}
	if l.unreadable > 0 {
		lines := console.Count(l.unreadable, "line has", "lines have")
		return errors.New(lines + " no digest, because a record cannot be read")
	}
	return nil
}

func (l *eventLog) follow(ctx context.Context, from *store.Store) error {
	for {
		err := l.printNew(ctx, from)
		hasStopped := ctx.Err() != nil && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled))
		switch {
		case !l.Follow:
			return err
		case hasStopped:
			return nil
		case isTemporary(err):
			l.messages.Warn("%v; trying again", err)
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

// isTemporary reports whether the database may be available again to this program.
func isTemporary(err error) bool {
	isLasting := errors.Is(err, store.ErrReplaced) || errors.Is(err, database.ErrNewer) ||
		errors.Is(err, database.ErrCorrupt)
	return errors.Is(err, store.ErrUnavailable) && !isLasting
}

// printNew prints the events that were committed since the cursor. After an error, it can be called again.
func (l *eventLog) printNew(ctx context.Context, from *store.Store) error {
	for page, err := range from.Log(ctx, l.filter(), l.after, waitingFor(l.messages)) {
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
func (l *eventLog) printPage(page store.LogPage) error {
	for _, entry := range page.Entries {
		if entry.Damaged != nil {
			l.unreadable++
			l.messages.Error(entry.Damaged)
		}
		if err := l.out.JSON(entry, ""); err != nil {
			return err
		}
	}
	l.after = page.End
	if len(page.Entries) == 0 {
		return nil
	}
	if err := l.out.Sync(); err != nil || l.cursor == nil {
		return err
	}
	last := page.Entries[len(page.Entries)-1]
	if err := l.cursor.store(store.Cursor{ID: last.ID, At: last.At}); err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	return nil
}
