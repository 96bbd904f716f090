package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
)

// eventLog prints events as lines of JSON, in the order of their ids: none with a lower id is committed later.
type eventLog struct {
	*listCommand
	out      *console.Output
	messages *console.Messages
	// after is the last printed event.
	after audit.Cursor
	// cursor is the file that keeps it, or nil.
	cursor *cursor
	// unreadable is the number of lines of records that cannot be read.
	unreadable int
}

// print prints the events and, if it follows, later ones until a signal arrives.
func (l *eventLog) print(ctx context.Context, from *store.Store) (err error) {
	ctx, stop := console.UntilInterrupted(ctx)
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
	err = l.follow(ctx, from)
	if err == nil && l.unreadable > 0 {
		lines := console.Count(l.unreadable, "line has", "lines have")
		err = errors.New(lines + " no digest, because a record cannot be read")
	}
	return err
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
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// isTemporary reports whether the database may be available again to this program.
func isTemporary(err error) bool {
	isLasting := errors.Is(err, database.ErrReplaced) || errors.Is(err, database.ErrNewer) ||
		errors.Is(err, database.ErrCorrupt)
	return errors.Is(err, store.ErrUnavailable) && !isLasting
}

// printNew prints the events that were committed since the cursor. After an error, it can be called again.
func (l *eventLog) printNew(ctx context.Context, from *store.Store) error {
	for page, err := range from.Log.Pages(ctx, l.filter(), l.after, waitingFor(l.messages)) {
		if errors.Is(err, audit.ErrEnded) {
			return fmt.Errorf("%w; if an older backup was restored, keep the old lines and start again without "+
				"--after or --cursor-file", err)
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
func (l *eventLog) printPage(page audit.Page) error {
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
	if err := l.cursor.store(audit.Cursor{ID: last.ID, At: last.At}); err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	return nil
}

// cursor is a file with the id and the time of the last printed event. One process at a time can open it.
type cursor struct {
	*os.File
	last audit.Cursor
}

// openCursor opens and locks a file, not a symbolic link. If root creates it, the owner of the directory owns it.
func openCursor(path string) (*cursor, error) {
	file, err := files.OpenOrCreate(path, syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	c := &cursor{File: file}
	if err := c.read(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return c, nil
}

// read locks the file, which is new if empty, and reads the event. It refuses shared files, and output that is lost.
func (c *cursor) read() error {
	const maxText = 64
	info, err := c.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(fmt.Errorf("%s is not a regular file; use another file", c.Name()), err)
	}
	if output, err := os.Stdout.Stat(); err != nil || os.SameFile(info, output) || console.IsOutputUnread() {
		return errors.New("standard output is closed, or is the null device or the cursor file, so the events would be " +
			"lost; redirect it to another file")
	}
	if err := syscall.Flock(int(c.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use by another process; stop that process, or use another file: %w", c.Name(), err)
	}
	text, err := io.ReadAll(io.LimitReader(c, maxText))
	if err != nil || len(text) == 0 {
		return err //nolint:wrapcheck // The error names the file.
	}
	var micros int64
	_, err = fmt.Sscanf(string(text), "%d %d\n", &c.last.ID, &micros)
	if err != nil || c.last.ID < 1 {
		return fmt.Errorf("%s does not contain the id and the time of an event, such as 17 1790000000000000; use another "+
			"file", c.Name())
	}
	c.last.At = database.TimeOf(time.UnixMicro(micros))
	return nil
}

// store writes the last event, and syncs it. Its id is not lower, so it overwrites all digits of the previous id.
func (c *cursor) store(last audit.Cursor) error {
	_, err := c.WriteAt(fmt.Appendf(nil, "%d %016d\n", last.ID, last.At.UnixMicro()), 0)
	if err == nil {
		err = c.Sync()
	}
	return err //nolint:wrapcheck // The error names the file.
}
