package main

import (
	"fmt"
	"strings"
	"time"

	"example.com/providerd/cmd/bench/figures"
)

// table renders the figures in Markdown.
func table(rows []comparison, bare time.Duration, sizes []growth) string {
	var text strings.Builder
	text.WriteString("| connections | (a) creates/s | (b) | (c) | c/a | c/b | p50 ms | p95 ms | p99 ms | CPU s per 1,000 | " +
		"peak MiB |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		milliseconds := func(of func(result) float64) float64 { return row.median(whole, of) / 1000 }
		fmt.Fprintf(&text, "| %d | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %.3f | %.0f |\n", row.connections,
			row.median(echoAlone, result.perSecond), row.median(withValidation, result.perSecond),
			row.median(whole, result.perSecond), row.ratio(whole, echoAlone), row.ratio(whole, withValidation),
			milliseconds(func(r result) float64 { return r.P50 }), milliseconds(func(r result) float64 { return r.P95 }),
			milliseconds(func(r result) float64 { return r.P99 }), row.median(whole, result.cpuPerThousand),
			row.median(whole, func(r result) float64 { return r.PeakMiB }))
	}
	lone := rows[0]
	both := 1 / (1/lone.median(withValidation, result.perSecond) + bare.Seconds())
	fmt.Fprintf(&text, "\nOne connection reaches %.2f of what one validated request and one bare SQLite commit would "+
		"give (%.0f creates/s).\n\nWith 64 connections, by the size of the database:\n\n"+
		"| rows | creates/s | ratio to %d rows | start-up s |\n| --- | --- | --- | --- |\n",
		lone.median(whole, result.perSecond)/both, both, sizes[0].rows)
	for _, size := range sizes {
		fmt.Fprintf(&text, "| %d | %.0f | %.2f | %.2f |\n", size.rows, median(size.perSecond),
			size.ratio(sizes[0]), median(size.startSeconds))
	}
	return text.String()
}

// plot draws the creates per second of each kind as a series.
func plot(rows []comparison, kinds, series []string) string {
	bars := figures.Bars{Title: "thousand creates/s", Series: series}
	for _, row := range rows {
		group := figures.Group{Name: fmt.Sprintf("%d connections", row.connections)}
		for _, kind := range kinds {
			rate := 0.0
			if len(row.results[kind]) > 0 {
				rate = row.median(kind, result.perSecond)
			}
			group.Values = append(group.Values, rate/1000)
		}
		bars.Groups = append(bars.Groups, group)
	}
	return bars.SVG()
}
