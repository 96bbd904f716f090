package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"example.com/providerd/store"
)

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
