package audit

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

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/event"
)

type verifyCommand struct {
	console.DatabaseFlags
	File string `arg:"" type:"path" help:"File with the lines that \"audit list --output jsonl\" printed; /dev/stdin for standard input."`
	console.ListFormat
}

// Help is the long help text.
func (*verifyCommand) Help() string {
	return "Compares the database with audit lines saved elsewhere. It lists each provider, with its links, and each " +
		"token that was changed, removed or inserted without an event, and each event that was changed, removed or " +
		"inserted. Lines may be repeated, but must be in order, without gaps. The exit status is 0 if nothing differs, 3 " +
		"if something differs, and 1 if something could not be compared."
}

// Run compares the database with the file.
func (c *verifyCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	file, err := os.Open(c.File)
	if err != nil {
		return fmt.Errorf("read the lines: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := readLines(c.File, file)
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		// What a follower adds meanwhile can be later than the log that is compared.
		lines = readLines(c.File, io.LimitReader(file, info.Size()))
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		compared := comparison{messages: messages, database: database.ID}
		err := compared.compare(lines, func(id int64) iter.Seq2[audit.Entry, error] {
			return entriesAfter(ctx, database, id, waitingFor(messages))
		})
		if err != nil {
			return err
		}
		for found, err := range database.Log.Contradictions(ctx) {
			if err != nil {
				return err
			}
			compared.found(found.Created, "%s", found.Detail)
		}
		list := console.List[difference]{Headings: "PROVIDER,TOKEN,EVENT,FINDING", Rows: difference.rows}
		if err := list.Print(out, messages, c.Output, console.Values(compared.differences...)); err != nil {
			return err
		}
		if compared.unlisted, err = database.Log.Unlisted(ctx, compared.first, compared.last); err != nil {
			return err
		}
		return compared.result()
	})
}

// entriesAfter yields the entries of the log after an id. It yields none if the log ends earlier.
func entriesAfter(
	ctx context.Context, database *store.Store, id int64, waiting func(transaction string),
) iter.Seq2[audit.Entry, error] {
	return func(yield func(audit.Entry, error) bool) {
		for page, err := range database.Log.Pages(ctx, event.Filter{}, audit.Cursor{ID: id}, waiting) {
			if errors.Is(err, audit.ErrEnded) {
				return
			}
			if err != nil {
				yield(audit.Entry{}, err)
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

// readLines yields the complete lines of a file. A program may be writing the last one.
func readLines(name string, from io.Reader) iter.Seq2[audit.Entry, error] {
	const maxLine = 1 << 20
	return func(yield func(audit.Entry, error) bool) {
		reader := bufio.NewReaderSize(from, maxLine)
		for number := 1; ; number++ {
			text, err := reader.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			var line audit.Entry
			if err == nil {
				line, err = parseLine(bytes.TrimSuffix(text, []byte("\n")))
			}
			if err != nil {
				err = fmt.Errorf("%s: line %d is compressed, or not a line of \"audit list --output jsonl\": %w", name, number, err)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func parseLine(text []byte) (line audit.Entry, err error) {
	// After a kill, the beginning of a line can be left before the next one.
	text = text[max(0, bytes.LastIndex(text, []byte(`{"id":`))):]
	if err := json.Unmarshal(text, &line); err != nil {
		return line, err //nolint:wrapcheck // The caller adds which line it is.
	}
	switch {
	case line.ID < 1, line.Event.Event == "":
		return line, errors.New("it has no id or no event")
	case (line.Kind != "" || line.Name != "") && line.State == nil:
		return line, errors.New("it has no digest, because it was printed with a filter")
	case line.Database == 0:
		return line, errors.New("it has no database")
	default:
		return line, nil
	}
}
