package main

import (
	"bytes"
	"os"
	"testing"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// lineCounter counts the lines that it is handed.
type lineCounter int

func (c *lineCounter) Write(text []byte) (int, error) {
	*c += lineCounter(bytes.Count(text, []byte("\n")))
	return len(text), nil
}

// However many providers have advice, no more of it than a part of the table is in memory.
func TestAdviceIsPrintedInParts(t *testing.T) {
	t.Parallel()
	const count = 20_000
	for _, form := range []string{"table", formatJSON, formatYAML} {
		var printed lineCounter
		out := newOutput(&printed)
		providers := func(yield func(advised, error) bool) {
			for pk := range int32(count) {
				if held := int(pk) - int(printed); held > 2*tableRows {
					t.Fatalf("%s: %d rows are in memory", form, held)
				}
				given := []advice.Advice{{Code: "a-code", Pointer: "/a_field", Detail: "a sentence", Section: "a source"}}
				if !yield(advised{PK: pk, Kind: store.KindOAuth2, Advice: given}, nil) {
					return
				}
			}
		}
		if err := advisedProviders().print(out, &messages{file: os.Stderr}, form, providers); err != nil {
			t.Fatal(err)
		}
		if err := out.flush(); err != nil || printed < count {
			t.Errorf("%s: %d lines, %v", form, printed, err)
		}
	}
}
