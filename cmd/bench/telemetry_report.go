package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// telemetryTable renders the figures in Markdown.
func telemetryTable(rows []comparison) string {
	var text strings.Builder
	text.WriteString("| connections | creates/s without | CPU µs per create | metrics / without | extra CPU µs | " +
		"traces / without | extra CPU µs |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "| %d | %.0f | %.0f |", row.connections,
			row.median(without, result.perSecond), row.median(without, result.cpuPerCreate))
		for _, kind := range []string{withMetrics, withTraces} {
			fmt.Fprintf(&text, " %s | %s |", spread(row.pairs(kind, without, rateRatio), twoDecimals),
				spread(row.pairs(kind, without, cpuDifference), wholeNumber))
		}
		text.WriteString("\n")
	}
	return text.String()
}

func cpuDifference(r, other result) float64 { return r.cpuPerCreate() - other.cpuPerCreate() }

// spread formats the median of values and the range of their middle half.
func spread(values []float64, format func(float64) string) string {
	sorted := slices.Sorted(slices.Values(values))
	low, high := sorted[len(sorted)/4], sorted[len(sorted)*3/4]
	return fmt.Sprintf("%s (%s to %s)", format(median(values)), format(low), format(high))
}

func twoDecimals(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) }

// wholeNumber formats an integer, and -0 as 0.
func wholeNumber(value float64) string { return strconv.Itoa(int(math.Round(value))) }
