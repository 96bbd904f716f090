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
	"unicode"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/event"
)

type verifyCommand struct {
	console.DatabaseFlags
	File string `arg:"" help:"File with the lines that \"audit list --output jsonl\" printed; - for standard input."`
	console.ListFormat
}

// Help is the long help text.
func (*verifyCommand) Help() string {
	return "Compares the database with audit lines saved elsewhere. It lists each provider, with its links, and each " +
		"token that was changed, removed or inserted without an event, and each event that was changed, removed or " +
		"inserted. Lines may be repeated, but must be in order, without gaps. The exit status is 0 if nothing differs, 3 " +
		"if something differs, and 1 if something could not be compared."
}

// Validate refuses a compressed file.
func (c *verifyCommand) Validate() error { return console.CheckPath(c.File) }

// Run compares the database with the file.
func (c *verifyCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	if c.File == "-" {
		c.File = os.Stdin.Name()
	}
	file, err := os.Open(c.File)
	if err != nil {
		return fmt.Errorf("read the lines: %w", err)
	}
	defer func() { _ = file.Close() }()
	var from io.Reader = file
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		// What a follower adds meanwhile can be later than the log that is compared.
		from = io.LimitReader(file, info.Size())
	}
	return c.WithStore(ctx, func(database *store.Store) error {
		compared := comparison{messages: messages, database: database.ID}
		err := compared.compare(readLines(c.File, from, messages), func(id int64) iter.Seq2[audit.Entry, error] {
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
func readLines(name string, from io.Reader, messages *console.Messages) iter.Seq2[audit.Entry, error] {
	const maxLine = 1 << 20
	return func(yield func(audit.Entry, error) bool) {
		reader := bufio.NewReaderSize(from, maxLine)
		for number := 1; ; number++ {
			text, err := reader.ReadSlice('\n')
			isEnd := errors.Is(err, io.EOF)
			if isEnd && !bytes.ContainsFunc(text, unicode.IsControl) {
				if len(text) > 0 {
					messages.Note("%s: line %d is incomplete, and was not compared", name, number)
				}
				return
			}
			var line audit.Entry
			if err == nil || isEnd {
				line, err = parseLine(bytes.TrimSpace(text))
			}
			if err != nil {
				err = fmt.Errorf("%s: line %d %w", name, number, err)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// parseLine returns an error that is the predicate of a sentence about the line.
func parseLine(text []byte) (line audit.Entry, err error) {
	// After a kill, the beginning of a line can be left before the next one.
	text = text[max(0, bytes.LastIndex(text, []byte(`{"id":`))):]
	err = json.Unmarshal(text, &line)
	switch {
	case err != nil && bytes.ContainsFunc(text, unicode.IsControl):
		return line, errors.New("is compressed, or not text; decompress the file")
	case err != nil, line.ID < 1, line.Event.Event == "", line.Database == 0:
		return line, errors.New(`is not one of "audit list --output jsonl"; save the output of that command`)
	case (line.Kind != "" || line.Name != "") && line.State == nil:
		return line, errors.New("has no digest, because it was printed with a filter; save lines that are not filtered")
	default:
		return line, nil
	}
}
