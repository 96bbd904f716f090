package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// table aligns columns of text for people.
type table struct {
	writer *tabwriter.Writer
}

func newTable(output io.Writer, headings ...string) table {
	result := table{writer: tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)}
	if len(headings) > 0 {
		result.row(headings...)
	}
	return result
}

func (t table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	// An error stays in the writer until flush.
	_, _ = fmt.Fprintln(t.writer, strings.Join(cells, "\t"))
}

func (t table) flush() error {
	if err := t.writer.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// printable escapes what would break the table or command the terminal.
func printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
