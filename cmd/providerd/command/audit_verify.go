package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

// errAuditDiffers means that nothing failed, but the database differs from what was kept.
var errAuditDiffers = errors.New("the database differs")

type auditVerifyCommand struct {
	flags.DatabaseFlags
	File string `arg:"" type:"path" help:"Lines that \"audit list --output jsonl\" has printed."`
	flags.ListFormat
}

// Help is the long help text.
func (*auditVerifyCommand) Help() string {
	return "Compares the database with lines that were kept elsewhere. It lists each record that was changed, removed " +
		"or inserted without an event, and each event that was changed, removed or inserted. Lines may be repeated, but " +
		"must be in order, without gaps. The exit status is 0 if nothing differs, 3 if something differs, and 1 if " +
		"something could not be compared."
}

// Run compares the database with the file.
func (c *auditVerifyCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
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
		list := console.List[difference]{
			Headings: "PROVIDER,EVENT,FINDING", Rows: rowsOf,
		}
		err := list.Print(out, messages, c.Output, func(yield func(difference, error) bool) {
			compared.yield = yield
			err := compared.compare(lines)
			report.Clear()
			if err == nil && !compared.ended {
				err = compared.addContradictions(database.Contradictions(ctx))
			}
			if err != nil {
				yield(difference{}, err)
			}
		})
		if err != nil {
			return err
		}
		return compared.result()
	})
}

func rowsOf(f difference) [][]string {
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

// maxLine is the longest line in bytes.
const maxLine = 1 << 20

// readLines yields the complete lines of a file, and calls progress with the number of bytes read. A program may be
// writing the last line.
func readLines(from io.Reader, progress func(read int64)) iter.Seq2[store.LogEntry, error] {
	return func(yield func(store.LogEntry, error) bool) {
		reader, read := bufio.NewReaderSize(from, maxLine), int64(0)
		for number := 1; ; number++ {
			text, err := reader.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				err = fmt.Errorf("it is longer than %d bytes", maxLine)
			}
			var line store.LogEntry
			if err == nil {
				line, err = parseLine(bytes.TrimSuffix(text, []byte("\n")))
			}
			if err != nil {
				err = fmt.Errorf("line %d is not a line of \"audit list --output jsonl\": %w", number, err)
			}
			read += int64(len(text))
			progress(read)
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func parseLine(text []byte) (line store.LogEntry, err error) {
	// After a kill, the beginning of a line can be left before the next one.
	text = text[max(0, bytes.LastIndex(text, []byte(`{"id":`))):]
	if err := json.Unmarshal(text, &line); err != nil {
		return line, err //nolint:wrapcheck // The caller adds which line it is.
	}
	switch {
	case line.ID < 1, line.Event.Event == "":
		return line, errors.New("it has no id or no event")
	case line.Kind != "" && line.RecordState == nil:
		return line, errors.New("it has no digest, because it was printed with a filter")
	default:
		return line, nil
	}
}
