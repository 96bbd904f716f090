package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The places of a plot, in units of SVG.
const (
	plotWidth  = 960
	plotLeft   = 64
	plotRight  = plotWidth - 20
	panelSize  = 120
	panelGap   = 40
	labelSize  = 14
	letterSize = 6
)

// plotStyle is for pages that are light or dark.
const plotStyle = `<style>
text { font: 11px sans-serif; fill: #222; stroke: #fff; stroke-width: 3px; paint-order: stroke }
.title { font-weight: bold } .ground { fill: #fff }
.grid { stroke: #ddd } .mark { stroke: #888; stroke-dasharray: 3 3 } .span { fill: #888; opacity: 0.2 }
polyline { fill: none; stroke-width: 1.3; stroke-linejoin: round }
polyline.first { stroke: #1261a8 } polyline.second { stroke: #c2410c }
text.first { fill: #1261a8 } text.second { fill: #c2410c }
@media (prefers-color-scheme: dark) {
text { fill: #ddd; stroke: #16191d } .ground { fill: #16191d } .grid { stroke: #3a3f45 } .mark { stroke: #999 }
polyline.first { stroke: #6cb6ff } polyline.second { stroke: #ffa657 }
text.first { fill: #6cb6ff } text.second { fill: #ffa657 }
}
</style>
`

// plot is some panels over one axis of time, with what happened meanwhile.
type plot struct {
	length time.Duration
	marks  []soakMark
	panels []panel
}

// panel has one or two curves over an axis of their own. It begins with 0, or with least where each of its steps is ten
// times the one before.
type panel struct {
	title  string
	least  float64
	curves []curve
}

// curve has points in the order of time, in parts between which there is nothing.
type curve struct {
	name  string
	parts [][]point
}

type point struct {
	at    time.Duration
	value float64
}

// draw returns the plot in SVG.
func (p plot) draw() string {
	rows, labels := p.labels()
	top := rows*labelSize + 12
	bottom := top + len(p.panels)*(panelSize+panelGap)
	var text strings.Builder
	fmt.Fprintf(&text, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n%s"+
		"<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n", plotWidth, bottom+20, plotStyle)
	for _, mark := range p.marks {
		from, to := p.x(mark.from), p.x(mark.to)
		fmt.Fprintf(&text, "<rect class=\"span\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>"+
			"<path class=\"mark\" d=\"M%.1f %dV%d\"/>\n", from, top-8, to-from, bottom-top+8, from, top-8, bottom)
	}
	text.WriteString(labels)
	for i, one := range p.panels {
		p.drawPanel(&text, one, top+i*(panelSize+panelGap)+panelGap)
	}
	for _, tick := range ticks(p.length.Seconds(), 10) {
		x := p.x(time.Duration(tick * float64(time.Second)))
		fmt.Fprintf(&text, "<path class=\"grid\" d=\"M%.1f %dv5\"/>"+
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g s</text>\n", x, bottom, x, bottom+16, tick)
	}
	text.WriteString("</svg>\n")
	return text.String()
}

func (p plot) x(at time.Duration) float64 {
	return plotLeft + (plotRight-plotLeft)*at.Seconds()/p.length.Seconds()
}

// labels names the marks above the panels, in as few rows as let no two of them meet.
func (p plot) labels() (rows int, text string) {
	var ends []float64
	var all strings.Builder
	for _, mark := range p.marks {
		width := float64(len(mark.label) * letterSize)
		x, row := min(p.x(mark.from), plotRight-width), 0
		for row < len(ends) && ends[row] > x {
			row++
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row] = x + width + 2*letterSize
		fmt.Fprintf(&all, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x, (row+1)*labelSize, mark.label)
	}
	return len(ends), all.String()
}

// drawPanel draws a panel whose curves begin at a height.
func (p plot) drawPanel(text *strings.Builder, one panel, top int) {
	scale := one.scale()
	y := func(value float64) float64 { return float64(top) + panelSize*(1-scale.share(value)) }
	fmt.Fprintf(text, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", plotLeft, top-10, one.title)
	for _, tick := range scale.ticks {
		fmt.Fprintf(text, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
			plotLeft, y(tick), plotRight, plotLeft-6, y(tick)+4, tick)
	}
	end := plotRight
	for i, drawn := range slices.Backward(one.curves) {
		class := []string{"first", "second"}[i]
		for _, part := range drawn.parts {
			fmt.Fprintf(text, "<polyline class=\"%s\" points=\"", class)
			for _, at := range part {
				fmt.Fprintf(text, "%.1f,%.1f ", p.x(at.at), y(at.value))
			}
			text.WriteString("\"/>\n")
		}
		fmt.Fprintf(text, "<text class=\"%s\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
			class, end, top-10, drawn.name)
		end -= len(drawn.name)*letterSize + 16
	}
}

// scale is an axis of values.
type scale struct {
	ticks []float64
	// share is how far up a value is, from 0 to 1.
	share func(value float64) float64
}

func (p panel) scale() scale {
	most := p.least
	for _, one := range p.curves {
		for _, part := range one.parts {
			for _, at := range part {
				most = max(most, at.value)
			}
		}
	}
	if p.least > 0 {
		decades := max(1, math.Ceil(math.Log10(most/p.least)))
		made := scale{share: func(value float64) float64 { return max(0, math.Log10(value/p.least)) / decades }}
		for i := range int(decades) + 1 {
			made.ticks = append(made.ticks, p.least*math.Pow10(i))
		}
		return made
	}
	made := ticks(most, 4)
	step := made[1]
	highest := math.Ceil(most/step) * step
	if last := made[len(made)-1]; last < highest {
		made = append(made, highest)
	}
	return scale{ticks: made, share: func(value float64) float64 { return value / highest }}
}

// ticks are round numbers from 0 up to the most, of which there are about as many as wanted.
func ticks(most float64, wanted int) []float64 {
	step := math.Pow10(int(math.Floor(math.Log10(max(most, 1) / float64(wanted)))))
	for _, factor := range []float64{2, 2.5, 2} {
		if most/step > float64(wanted)*1.2 {
			step *= factor
		}
	}
	var all []float64
	for i := 0; float64(i)*step <= most || i < 2; i++ {
		all = append(all, float64(i)*step)
	}
	return all
}
