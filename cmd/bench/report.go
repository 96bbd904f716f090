package main

import (
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/cmd/bench/figures"
)

// table renders the figures in Markdown: for each server the rate, its ratio to that of the first, and the CPU time.
// Beside the yardstick, it also has the latency and memory of the last.
func table(servers []server, rows []row) string {
	header, last := "|connections|", len(servers)-1
	for i, server := range servers {
		header += server.name + ", creates/s|"
		if i > 0 {
			header += "/ " + servers[0].name + "|"
		}
		header += "CPU µs|"
	}
	isCompared := servers[0].name == "yardstick"
	if isCompared {
		header += "p50 ms|p95 ms|p99 ms|peak MiB|"
	}
	var text strings.Builder
	text.WriteString(header + "\n|" + strings.Repeat("-|", strings.Count(header, "|")-1) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "|%d|", row.connections)
		for i := range servers {
			fmt.Fprintf(&text, "%.0f|", row.median(i, result.perSecond))
			if i > 0 {
				fmt.Fprintf(&text, "%.2f|", row.ratio(i))
			}
			fmt.Fprintf(&text, "%.0f|", row.median(i, result.cpuPerCreate))
		}
		if isCompared {
			fmt.Fprintf(&text, "%.2f|%.2f|%.2f|%.0f|",
				row.median(last, func(r result) float64 { return r.P50 / 1000 }),
				row.median(last, func(r result) float64 { return r.P95 / 1000 }),
				row.median(last, func(r result) float64 { return r.P99 / 1000 }),
				row.median(last, func(r result) float64 { return r.PeakMiB }))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// plot draws the creates per second of each server.
func plot(servers []server, rows []row) string {
	bars := figures.Bars{Title: "thousand creates/s"}
	for _, server := range servers {
		bars.Series = append(bars.Series, server.name)
	}
	for _, row := range rows {
		group := figures.Group{Name: fmt.Sprintf("%d connections", row.connections)}
		for i := range servers {
			group.Values = append(group.Values, row.median(i, result.perSecond)/1000)
		}
		bars.Groups = append(bars.Groups, group)
	}
	return bars.SVG()
}

// median returns the median of a function of a server's results over the rounds.
func (r row) median(server int, of func(result) float64) float64 {
	var values []float64
	for _, result := range r.results[server] {
		values = append(values, of(result))
	}
	return median(values)
}

// ratio returns the median over the rounds of the ratio of a server's rate to that of the first.
func (r row) ratio(server int) float64 {
	var values []float64
	for round, result := range r.results[server] {
		values = append(values, result.perSecond()/r.results[0][round].perSecond())
	}
	return median(values)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
