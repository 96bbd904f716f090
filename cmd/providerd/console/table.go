package console

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// tableRows and tableBytes limit what is in memory before columns are aligned and printed. A wider cell in a later
	// row widens its column from there on.
	tableRows  = 500
	tableBytes = 1 << 20
	// maxColumn limits the width of a column. A wider cell shifts the cells after it.
	maxColumn = 255
	// minColumn is the least width to which a column is shortened, that of a date, and minText that of the last column
	// before its text is wrapped.
	minColumn = 10
	minText   = 32
	columnGap = 2
)

// table aligns columns of text for people. It shortens cells and wraps the last column if a terminal is too narrow, and
// omits columns without any text if all rows fit in memory.
type table struct {
	output   io.Writer
	headings []string
	// limit is the width of the terminal; 0 for output that is not a terminal.
	limit  int
	widths []int
	rows   []tableRow
	bytes  int
	// err is the first error of the output.
	err error
}

type tableRow struct {
	cells []string
	color Color
}

// NewTable returns a new table, with a line of headings if there are any.
func NewTable(output io.Writer, headings ...string) *table {
	result := &table{output: output, headings: headings, limit: terminalWidth()}
	if len(headings) > 0 {
		result.rows = append(result.rows, tableRow{cells: slices.Clone(headings)})
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

// Row adds a row, and prints buffered rows when there are many. Flush returns the error.
func (t *table) Row(cells ...string) { t.ColoredRow(NoColor, cells...) }

// ColoredRow adds a row whose first cell has a color, if standard output shows colors.
func (t *table) ColoredRow(color Color, cells ...string) {
	for i, cell := range cells {
		cells[i] = Printable(cell)
		t.bytes += len(cell)
	}
	t.rows = append(t.rows, tableRow{cells, color})
	if len(t.rows) >= tableRows || t.bytes >= tableBytes {
		t.print()
	}
}

// Flush prints the buffered rows.
func (t *table) Flush() error {
	if t.widths == nil && len(t.headings) > 0 && len(t.rows) > 1 {
		t.omitEmpty()
	}
	t.print()
	return t.err
}

// omitEmpty removes the columns that have only a heading.
func (t *table) omitEmpty() {
	for column := range slices.Backward(t.headings) {
		hasText := func(row tableRow) bool { return row.cells[column] != "" }
		if slices.ContainsFunc(t.rows[1:], hasText) {
			continue
		}
		for i := range t.rows {
			t.rows[i].cells = slices.Delete(t.rows[i].cells, column, column+1)
		}
	}
}

func (t *table) print() {
	for _, row := range t.rows {
		for i, cell := range row.cells {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = min(max(t.widths[i], utf8.RuneCountInString(cell)), maxColumn)
		}
	}
	t.fit()
	for _, row := range t.rows {
		t.printRow(row)
	}
	t.rows, t.bytes = t.rows[:0], 0
}

// fit shortens columns from right to left until the last one has room, times last and to their date.
func (t *table) fit() {
	last := len(t.widths) - 1
	if t.limit <= 0 || len(t.rows) == 0 || last < 0 {
		return
	}
	sample := t.rows[len(t.rows)-1].cells
	for _, times := range []bool{false, true} {
		for i, width := range slices.Backward(t.widths[:last]) {
			excess := t.start(last) + min(t.widths[last], minText) - t.limit
			if excess <= 0 || width <= minColumn || isTime(sample[min(i, len(sample)-1)]) != times {
				continue
			}
			if t.widths[i] = max(width-excess, minColumn); times {
				t.widths[i] = minColumn
			}
		}
	}
	t.widths[last] = min(t.widths[last], max(t.limit-t.start(last), minColumn))
}

func isTime(cell string) bool {
	_, err := time.Parse(time.RFC3339, cell)
	return err == nil
}

// start returns where a column begins.
func (t *table) start(column int) (start int) {
	for _, width := range t.widths[:column] {
		start += width + columnGap
	}
	return start
}

func (t *table) printRow(row tableRow) {
	var line strings.Builder
	for i, cell := range row.cells {
		if i == len(t.widths)-1 {
			cell = strings.Join(t.wrap(cell), "\n"+strings.Repeat(" ", t.start(i)))
		} else if t.limit > 0 && utf8.RuneCountInString(cell) > t.widths[i] {
			cell = shorten(cell, t.widths[i])
		}
		padding := strings.Repeat(" ", max(t.widths[i]-utf8.RuneCountInString(cell), 0)+columnGap)
		if i == 0 {
			cell = row.color.paint(os.Stdout, cell)
		}
		line.WriteString(cell)
		if i < len(row.cells)-1 {
			line.WriteString(padding)
		}
	}
	if t.err == nil {
		if _, err := io.WriteString(t.output, line.String()+"\n"); err != nil {
			t.err = fmt.Errorf("write table: %w", err)
		}
	}
}

// shorten cuts a cell; of a time, the date is left.
func shorten(cell string, width int) string {
	if isTime(cell) {
		return cell[:len(time.DateOnly)]
	}
	return string([]rune(cell)[:width-1]) + "…"
}

// wrap splits the text of the last column into lines, between words where possible.
func (t *table) wrap(text string) (lines []string) {
	width := t.widths[len(t.widths)-1]
	for t.limit > 0 && utf8.RuneCountInString(text) > width {
		runes := []rune(text)
		at := strings.LastIndex(string(runes[:width+1]), " ")
		if at <= 0 {
			at = len(string(runes[:width]))
		}
		lines = append(lines, text[:at])
		text = strings.TrimPrefix(text[at:], " ")
	}
	return append(lines, text)
}
