package console

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// tableRows limits the rows in memory. A wider cell in a later row widens its column from there on.
	tableRows = 500
	// minColumn is the least width to which a column of times is shortened, that of a date, and maxWhole that of the other
	// columns, so that no id or usual name is cut. minText is that of the last column before its text is wrapped.
	minColumn = 10
	maxWhole  = 40
	minText   = 32
	columnGap = 2
)

// table aligns columns of text for people. It shortens cells and wraps the last column if a terminal is too narrow, and
// omits columns without any text if all rows fit in memory.
type table struct {
	output *Output
	// limit is the width of the terminal; 0 for output that is not a terminal.
	limit  int
	widths []int
	rows   []tableRow
}

type tableRow struct {
	cells []string
	color Color
}

// NewTable returns a new table, with a line of headings if there are any. All its rows have equally many cells.
func NewTable(output *Output, headings ...string) *table {
	result := &table{output: output, limit: terminalWidth()}
	if len(headings) > 0 {
		result.Row(slices.Clone(headings)...)
	}
	return result
}

// terminalWidth returns the width of standard output, or 0 if it is not a terminal. COLUMNS overrides it.
func terminalWidth() int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil {
		return columns
	}
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// Row adds a row, and prints buffered rows when there are many. Later writes to the output return the error.
func (t *table) Row(cells ...string) { t.ColoredRow(NoColor, cells...) }

// ColoredRow adds a row whose first cell has a color, if standard output shows colors.
func (t *table) ColoredRow(color Color, cells ...string) {
	for i, cell := range cells {
		cells[i] = Printable(cell)
	}
	if t.rows = append(t.rows, tableRow{cells, color}); len(t.rows) == tableRows {
		t.print()
	}
}

// Flush prints the buffered rows, and is Output.Flush.
func (t *table) Flush() error {
	if t.widths == nil && len(t.rows) > 1 {
		t.omitEmpty()
	}
	t.print()
	return t.output.Flush()
}

// omitEmpty removes the columns that have only a heading, or nothing.
func (t *table) omitEmpty() {
	for column := range slices.Backward(t.rows[0].cells) {
		if slices.ContainsFunc(t.rows[1:], func(row tableRow) bool { return row.cells[column] != "" }) {
			continue
		}
		for i := range t.rows {
			t.rows[i].cells = slices.Delete(t.rows[i].cells, column, column+1)
		}
	}
}

func (t *table) print() {
	if len(t.rows) == 0 {
		return
	}
	if t.widths == nil {
		t.widths = make([]int, len(t.rows[0].cells))
	}
	for _, row := range t.rows {
		for i, cell := range row.cells {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	last := len(t.widths) - 1
	if t.limit > 0 {
		t.fit(last)
	}
	for _, row := range t.rows {
		for i, cell := range row.cells[:last] {
			row.cells[i] = pad(cell, t.widths[i])
		}
		lines := wrap(row.cells[last], t.widths[last])
		row.cells[last] = strings.Join(lines, "\n"+strings.Repeat(" ", t.start(last)))
		row.cells[0] = row.color.paint(os.Stdout, row.cells[0])
		_ = t.output.Line(strings.Join(row.cells, ""))
	}
	t.rows = t.rows[:0]
}

// fit shortens columns from right to left until the last one has room.
func (t *table) fit(last int) {
	for i, width := range slices.Backward(t.widths[:last]) {
		least := maxWhole
		if slices.ContainsFunc(t.rows, func(row tableRow) bool { return dateOf(row.cells[i]) != "" }) {
			least = minColumn
		}
		excess := max(0, t.start(last)+min(t.widths[last], minText)-t.limit)
		t.widths[i] = min(width, max(width-excess, least))
	}
	t.widths[last] = min(t.widths[last], max(t.limit-t.start(last), minColumn))
}

func (t *table) start(column int) (start int) {
	for _, width := range t.widths[:column] {
		start += width + columnGap
	}
	return start
}

// pad returns a cell as wide as its column, with the gap. Of a time that is shortened, the date is left.
func pad(cell string, width int) string {
	if runes := []rune(cell); len(runes) > width {
		cell = cmp.Or(dateOf(cell), string(runes[:width-1])+"…")
	}
	return fmt.Sprintf("%-*s", width+columnGap, cell)
}

// dateOf returns the date of a time; "" for other cells.
func dateOf(cell string) string {
	if _, err := time.Parse(time.RFC3339, cell); err != nil {
		return ""
	}
	return cell[:len(time.DateOnly)]
}

// wrap splits a text into lines, between words where possible.
func wrap(text string, width int) (lines []string) {
	for runes := []rune(text); len(runes) > width; runes = []rune(text) {
		at := strings.LastIndex(string(runes[:width+1]), " ")
		if at <= 0 {
			at = len(string(runes[:width]))
		}
		lines = append(lines, text[:at])
		text = strings.TrimPrefix(text[at:], " ")
	}
	return append(lines, text)
}
