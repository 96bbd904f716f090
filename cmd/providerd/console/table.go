package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	// tableRows and tableBytes bound what is in memory before columns are aligned and printed. A wider cell further down
	// makes its column wider from there on.
	tableRows  = 500
	tableBytes = 1 << 20
	// maxColumn is how wide a column gets. A wider cell moves what is behind it.
	maxColumn = 255
	// columnGap lies between two columns.
	columnGap = 2
)

// table aligns columns of text for people.
type table struct {
	output io.Writer
	widths []int
	rows   []tableRow
	bytes  int
	// err is why nothing more is printed.
	err error
}

type tableRow struct {
	cells []string
	color Color
}

// NewTable begins a table, which has a line of headings if there are any.
func NewTable(output io.Writer, headings ...string) *table {
	result := &table{output: output}
	if len(headings) > 0 {
		result.rows = append(result.rows, tableRow{cells: headings})
	}
	return result
}

// Row adds a row, and prints those that wait once there are enough. An error is that of Flush.
func (t *table) Row(cells ...string) { t.ColoredRow(NoColor, cells...) }

// Colored adds a row that is shown in a color where standard output takes one.
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

// Flush prints the rows that wait.
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
		line.WriteString(cell)
		if i < len(row.cells)-1 {
			line.WriteString(strings.Repeat(" ", max(t.widths[i]-utf8.RuneCountInString(cell), 0)+columnGap))
		}
	}
	if _, err := io.WriteString(t.output, row.color.paint(os.Stdout, line.String())+"\n"); err != nil {
		t.err = fmt.Errorf("write table: %w", err)
	}
}
