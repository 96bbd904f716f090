package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	// tableRows and tableBytes limit what is in memory before columns are aligned and printed. A wider cell in a later
	// row widens its column from there on.
	tableRows  = 500
	tableBytes = 1 << 20
	// maxColumn limits the width of a column. A wider cell shifts the cells after it.
	maxColumn = 255
	// columnGap is the number of spaces between columns.
	columnGap = 2
)

// table aligns columns of text for people.
type table struct {
	output io.Writer
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
	result := &table{output: output}
	if len(headings) > 0 {
		result.rows = append(result.rows, tableRow{cells: headings})
	}
	return result
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
		_ = t.Flush()
	}
}

// Flush prints the buffered rows.
func (t *table) Flush() error {
	for _, row := range t.rows {
		for i, cell := range row.cells {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = min(max(t.widths[i], utf8.RuneCountInString(cell)), maxColumn)
		}
	}
	for _, row := range t.rows {
		t.print(row)
	}
	t.rows, t.bytes = t.rows[:0], 0
	return t.err
}

func (t *table) print(row tableRow) {
	if t.err != nil {
		return
	}
	var line strings.Builder
	for i, cell := range row.cells {
		if i == 0 {
			line.WriteString(row.color.paint(os.Stdout, cell))
		} else {
			line.WriteString(cell)
		}
		if i < len(row.cells)-1 {
			line.WriteString(strings.Repeat(" ", max(t.widths[i]-utf8.RuneCountInString(cell), 0)+columnGap))
		}
	}
	if _, err := io.WriteString(t.output, line.String()+"\n"); err != nil {
		t.err = fmt.Errorf("write table: %w", err)
	}
}
