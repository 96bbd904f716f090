package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"syscall"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

// ErrDiffers means that nothing failed, but the database differs from what was kept.
var ErrDiffers = errors.New("the database differs")

// VerifyCommand is "providerd audit verify" with its flags.
type VerifyCommand struct {
	flags.DatabaseFlags
	File string `arg:"" type:"path" help:"Lines that \"audit list --output jsonl\" has printed."`
	flags.ListFormat
}

// Help is the long help text.
func (*VerifyCommand) Help() string {
	return "Compares the database with lines that were kept elsewhere. It names each record that was changed, removed " +
		"or inserted without an event, and each event that was changed, removed or inserted. Lines may be repeated, but " +
		"must be in order, without gaps. The exit status is 0 if nothing differs, 3 if something differs, and 1 if " +
		"something could not be compared."
}

// Run compares the database with the file.
func (c *VerifyCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	// Do not wait for the writer of a FIFO.
	file, err := os.OpenFile(c.File, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("read the lines: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the lines: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; save the lines in one", c.File)
	}
	report := messages.Progress("bytes compared")
	// What a follower adds meanwhile can be later than the log that is compared.
	size := info.Size()
	lines := readLines(io.LimitReader(file, size), func(read int64) { report.Update(read, size) })
	return c.WithStore(ctx, func(database *store.Store) error {
		compared := &comparison{
			messages: messages, stop: func() {},
			entriesAfter: func(id int64) iter.Seq2[store.LogEntry, error] {
				return entriesAfter(ctx, database, id, waitingFor(messages))
			},
		}
		defer func() { compared.stop() }()
		list := console.List[finding]{
			Headings: "PROVIDER,EVENT,FINDING", Rows: rowsOf, Value: func(f finding) any { return f },
		}
		err := list.Print(out, messages, c.Output, func(yield func(finding, error) bool) {
			compared.yield = yield
			err := compared.compare(lines)
			report.Clear()
			if err == nil && !compared.ended {
				err = compared.addContradictions(database.Contradictions(ctx))
			}
			if err != nil {
				yield(finding{}, err)
			}
		})
		if err != nil {
			return err
		}
		return compared.result()
	})
}

func rowsOf(f finding) [][]string {
	cells := []string{"", "", f.Finding}
	for i, number := range []int64{f.Provider, f.Event} {
		if number != 0 {
			cells[i] = fmt.Sprint(number)
		}
	}
	return [][]string{cells}
}

// entriesAfter yields the entries of the log after an id. It yields none if the log ends earlier.
func entriesAfter(
	ctx context.Context, database *store.Store, id int64, waiting func(transaction string),
) iter.Seq2[store.LogEntry, error] {
	return func(yield func(store.LogEntry, error) bool) {
		for page, err := range database.Log(ctx, store.EventFilter{}, store.Cursor{ID: id}, waiting) {
			if errors.Is(err, store.ErrLogEnded) {
				return
			}
			if err != nil {
				yield(store.LogEntry{}, err)
				return
			}
			for _, entry := range page.Entries {
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}
