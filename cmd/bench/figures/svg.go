package figures

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Dimensions of a chart, in SVG units.
const (
	width     = 960
	right     = width - 20
	barsLeft  = 260
	barSize   = 12
	linesLeft = 64
	panelSize = 120
	panelGap  = 40
	labelSize = 14
)

const style = `<style>
text { font: 11px sans-serif; fill: #222; stroke: #fff; stroke-width: 3px; paint-order: stroke }
.title { font-weight: bold } .ground { fill: #fff } .grid { stroke: #ddd }
.mark { stroke: #888; stroke-dasharray: 3 3 } .span { fill: #888; opacity: 0.2 }
.bar, tspan { fill: currentColor } polyline { fill: none; stroke: currentColor; stroke-width: 1.3; stroke-linejoin: round }
.s0 { color: #1261a8 } .s1 { color: #c2410c } .s2 { color: #888 } .s3 { color: #147a4b }
@media (prefers-color-scheme: dark) {
text { fill: #ddd; stroke: #16191d } .ground { fill: #16191d } .grid { stroke: #3a3f45 } .mark { stroke: #999 }
.s0 { color: #6cb6ff } .s1 { color: #ffa657 } .s3 { color: #57d897 } }
</style>
`

func document(height int, body string) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n%s"+
		"<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n", width, height, style, body)
}

// heading returns the title of a chart and the names of its series in their colors.
func heading(y int, title string, series []string) string {
	var names strings.Builder
	for i, name := range series {
		fmt.Fprintf(&names, " <tspan class=\"s%d\">■ %s</tspan>", i, name)
	}
	return fmt.Sprintf("<text x=\"10\" y=\"%d\"><tspan class=\"title\">%s</tspan>%s</text>\n", y, title, &names)
}

// Bars is a chart of horizontal bars, grouped. A bar with the value 0 is left out.
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
	var text strings.Builder
	y := 2 * barSize
	text.WriteString(heading(y, b.Title, b.Series))
	for _, group := range b.Groups {
		y += barSize
		fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", barsLeft-8, y+barSize, group.Name)
		for i, value := range group.Values {
			if value == 0 {
				continue
			}
			length := value / most * (right - barsLeft - 40)
			fmt.Fprintf(&text, "<rect class=\"bar s%d\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"%d\"/>"+
				"<text x=\"%.0f\" y=\"%d\">%.1f</text>\n", i, barsLeft, y, length, barSize-1, barsLeft+length+5, y+barSize-2, value)
			y += barSize
		}
	}
	return document(y+barSize, text.String())
}

// Lines is a chart of panels over a common time axis, with marks for events.
type Lines struct {
	Length time.Duration
	Marks  []Mark
	Panels []Panel
}

// Mark is an event with a duration.
type Mark struct {
	Label    string
	From, To time.Duration
}

// Panel has curves over their own axis, which starts at 0, or is logarithmic from Least if that is positive.
type Panel struct {
	Title  string
	Least  float64
	Curves []Curve
}

// Curve has points ordered by time, in parts that are not connected.
type Curve struct {
	Name  string
	Parts [][]Point
}

// Point is a value at a time.
type Point struct {
	At    time.Duration
	Value float64
}

// SVG draws the chart. Labels of marks alternate between four rows, so that they do not overlap.
func (l Lines) SVG() string {
	const rows, top = 4, 4*labelSize + 12
	bottom := top + len(l.Panels)*(panelSize+panelGap)
	var text strings.Builder
	for i, mark := range l.Marks {
		from, to := l.x(mark.From), l.x(mark.To)
		fmt.Fprintf(&text, "<rect class=\"span\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>"+
			"<path class=\"mark\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\">%s</text>\n",
			from, top-8, to-from, bottom-top+8, from, top-8, bottom,
			min(from, float64(right-len(mark.Label)*labelSize/2)), (i%rows+1)*labelSize, mark.Label)
	}
	for i, panel := range l.Panels {
		l.draw(&text, panel, top+i*(panelSize+panelGap)+panelGap)
	}
	for _, tick := range ticks(l.Length.Seconds(), 10) {
		x := l.x(time.Duration(tick * float64(time.Second)))
		fmt.Fprintf(&text, "<path class=\"grid\" d=\"M%.1f %dv5\"/>"+
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g s</text>\n", x, bottom, x, bottom+16, tick)
	}
	return document(bottom+20, text.String())
}

func (l Lines) x(at time.Duration) float64 {
	return linesLeft + (right-linesLeft)*at.Seconds()/l.Length.Seconds()
}

// draw draws a panel at the height top.
func (l Lines) draw(text *strings.Builder, panel Panel, top int) {
	marks, share := panel.scale()
	y := func(value float64) float64 { return float64(top) + panelSize*(1-share(value)) }
	for _, tick := range marks {
		fmt.Fprintf(text, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
			linesLeft, y(tick), right, linesLeft-6, y(tick)+4, tick)
	}
	var names []string
	for i, curve := range panel.Curves {
		names = append(names, curve.Name)
		for _, part := range curve.Parts {
			fmt.Fprintf(text, "<polyline class=\"s%d\" points=\"", i)
			for _, point := range part {
				fmt.Fprintf(text, "%.1f,%.1f ", l.x(point.At), y(point.Value))
			}
			text.WriteString("\"/>\n")
		}
	}
	text.WriteString(heading(top-10, panel.Title, names))
}

// scale returns the ticks of the axis, and a function that returns how far up a value is, from 0 to 1.
func (p Panel) scale() (marks []float64, share func(value float64) float64) {
	most := p.Least
	for _, curve := range p.Curves {
		for _, point := range slices.Concat(curve.Parts...) {
			most = max(most, point.Value)
		}
	}
	if p.Least > 0 {
		decades := max(1, math.Ceil(math.Log10(most/p.Least)))
		for i := range int(decades) + 1 {
			marks = append(marks, p.Least*math.Pow10(i))
		}
		return marks, func(value float64) float64 { return max(0, math.Log10(value/p.Least)) / decades }
	}
	marks = ticks(most, 4)
	return marks, func(value float64) float64 { return value / marks[len(marks)-1] }
}

// ticks returns about as many round numbers as wanted, from 0 to at least the most.
func ticks(most float64, wanted int) []float64 {
	step := math.Pow10(int(math.Floor(math.Log10(max(most, 1) / float64(wanted)))))
	for _, factor := range []float64{2, 2.5, 2} {
		if most/step > float64(wanted)*1.2 {
			step *= factor
		}
	}
	var all []float64
	for i := range max(1, int(math.Ceil(most/step))) + 1 {
		all = append(all, float64(i)*step)
	}
	return all
}
