package main

import (
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/cmd/bench/figures"
)

// column is a figure of a server, or its ratio to that of another one, for each number of connections.
type column struct {
	title, format, server, other string
	of                           func(result) float64
}

// tables renders the figures in Markdown.
func (o options) tables(rows []row) string {
	if o.telemetry {
		return table(rows, compared("without", "metrics", "traces"))
	}
	creates := append(compared("yardstick", "providerd"),
		column{"p50 ms", "%.2f", "providerd", "", result.p50},
		column{"p95 ms", "%.2f", "providerd", "", func(r result) float64 { return r.P95 / 1000 }},
		column{"p99 ms", "%.2f", "providerd", "", func(r result) float64 { return r.P99 / 1000 }},
		column{"peak MiB", "%.0f", "providerd", "", func(r result) float64 { return r.PeakMiB }})
	if o.postgres {
		creates = append(creates, column{"pgbench, rows/s", "%.0f", "pgbench", "", result.perSecond},
			column{"providerd / pgbench", "%.2f", "providerd", "pgbench", result.perSecond})
	}
	return table(rows, creates) + "\n" + table(rows, append(compared("without keys"),
		column{"CPU with keys / without", "%.2f", "providerd", "without keys", result.cpuPerCreate},
		column{"validations/s", "%.0f", "validations", "", result.perSecond},
		column{"CPU µs", "%.0f", "validations", "", result.cpuPerCreate},
		column{"p50 ms", "%.2f", "validations", "", result.p50},
		column{"p50 / yardstick", "%.2f", "validations", "yardstick", result.p50}))
}

// compared returns the creates per second of servers, their ratio to those of the first, and the CPU time.
func compared(servers ...string) (columns []column) {
	for i, server := range servers {
		columns = append(columns, column{server + ", creates/s", "%.0f", server, "", result.perSecond})
		if i > 0 {
			columns = append(columns, column{"/ " + servers[0], "%.2f", server, servers[0], result.perSecond})
		}
		columns = append(columns, column{"CPU µs", "%.0f", server, "", result.cpuPerCreate})
	}
	return columns
}

func table(rows []row, columns []column) string {
	var header, body strings.Builder
	for _, column := range columns {
		header.WriteString(column.title + "|")
	}
	for _, row := range rows {
		fmt.Fprintf(&body, "|%d|", row.connections)
		for _, column := range columns {
			fmt.Fprintf(&body, column.format+"|", column.median(row))
		}
		body.WriteString("\n")
	}
	return "|connections|" + header.String() + "\n|-|" + strings.Repeat("-|", len(columns)) + "\n" + body.String()
}

// median returns the median over the rounds.
func (c column) median(r row) float64 {
	var values []float64
	for round, result := range r.results[c.server] {
		value := c.of(result)
		if c.other != "" {
			value /= c.of(r.results[c.other][round])
		}
		values = append(values, value)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// plot draws the creates per second.
func plot(rows []row) string {
	bars := figures.Bars{Title: "thousand creates/s", Series: []string{"yardstick", "providerd"}}
	for _, row := range rows {
		group := figures.Group{Name: fmt.Sprintf("%d connections", row.connections)}
		for _, server := range bars.Series {
			group.Values = append(group.Values, column{server: server, of: result.perSecond}.median(row)/1000)
		}
		bars.Groups = append(bars.Groups, group)
	}
	return bars.SVG()
}
