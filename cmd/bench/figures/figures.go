// Package figures writes what was measured: a chart in SVG, and text into a README.
package figures

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Put replaces the figures in a README between the comment with this title and "<!-- end of figures -->".
func Put(path, title, text string) error {
	begin, end := "<!-- "+title+" -->\n", "<!-- end of figures -->\n"
	readme, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read README: %w", err)
	}
	before, rest, begins := strings.Cut(string(readme), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for %q", path, title)
	}
	if err := os.WriteFile(path, []byte(before+begin+"\n"+text+"\n"+end+after), 0o600); err != nil {
		return fmt.Errorf("write README: %w", err)
	}
	return nil
}

// Dimensions of a chart, in SVG units.
const (
	width   = 960
	right   = width - 20
	left    = 260
	barSize = 12
)

const style = `<style>
text { font: 11px sans-serif; fill: #222; stroke: #fff; stroke-width: 3px; paint-order: stroke }
.title { font-weight: bold } .ground { fill: #fff } .bar, tspan { fill: currentColor }
.s0 { color: #1261a8 } .s1 { color: #c2410c } .s2 { color: #888 }
@media (prefers-color-scheme: dark) {
text { fill: #ddd; stroke: #16191d } .ground { fill: #16191d } .s0 { color: #6cb6ff } .s1 { color: #ffa657 } }
</style>
`

// Bars is a chart of horizontal bars, grouped.
type Bars struct {
	Title  string
	Series []string
	Groups []Group
}

// Group is a label and the values of its bars.
type Group struct {
	Name   string
	Values []float64
}

// SVG draws the chart.
func (b Bars) SVG() string {
	var most float64
	for _, group := range b.Groups {
		most = max(most, slices.Max(group.Values))
	}
	y := 2 * barSize
	var text strings.Builder
	fmt.Fprintf(&text, "<text x=\"10\" y=\"%d\"><tspan class=\"title\">%s</tspan>", y, b.Title)
	for i, name := range b.Series {
		fmt.Fprintf(&text, " <tspan class=\"s%d\">■ %s</tspan>", i, name)
	}
	text.WriteString("</text>\n")
	for _, group := range b.Groups {
		y += barSize
		fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left-8, y+barSize, group.Name)
		for i, value := range group.Values {
			length := value / most * (right - left - 40)
			fmt.Fprintf(&text, "<rect class=\"bar s%d\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"%d\"/>"+
				"<text x=\"%.0f\" y=\"%d\">%.1f</text>\n", i, left, y, length, barSize-1, left+length+5, y+barSize-2, value)
			y += barSize
		}
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n%s"+
		"<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n", width, y+barSize, style, &text)
}
