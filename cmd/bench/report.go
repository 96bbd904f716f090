package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	readmePath = "README.md"
	plotPath   = "cmd/bench/figures.svg"
	// The figures stand between these lines of the README.
	figuresBegin = "<!-- figures: make bench writes them -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
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
	fmt.Fprintf(&text, "\nOne connection reaches %.2f of what one validated request and one bare SQLite commit would give "+
		"(%.0f creates/s). By the size of the database, with 64 connections:", lone.median(whole, result.perSecond)/both, both)
	for _, size := range sizes {
		fmt.Fprintf(&text, " %d rows %.0f creates/s (%.2f);", size.rows, median(size.perSecond), size.ratio(sizes[0]))
	}
	return strings.TrimSuffix(text.String(), ";") + ".\n"
}

// putIntoReadme replaces the figures in the README.
func putIntoReadme(text string) error {
	readme, err := os.ReadFile(readmePath)
	if err != nil {
		return fmt.Errorf("read README: %w", err)
	}
	before, rest, begins := strings.Cut(string(readme), figuresBegin)
	_, after, ends := strings.Cut(rest, figuresEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the figures", readmePath)
	}
	readme = []byte(before + figuresBegin + "\n" + text + "\n" + figuresEnd + after)
	if err := os.WriteFile(readmePath, readme, 0o600); err != nil {
		return fmt.Errorf("write README: %w", err)
	}
	return nil
}

// plot draws the creates per second of the three servers as bars, in SVG.
func plot(rows []comparison) string {
	const width, height, left, bottom, bar = 640, 300, 60, 260, 36
	var most float64
	for _, row := range rows {
		most = max(most, row.median(echoAlone, result.perSecond))
	}
	var text strings.Builder
	fmt.Fprintf(&text, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+
		"\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", width, height)
	for i, row := range rows {
		for j, kind := range []string{echoAlone, withValidation, whole} {
			rate := row.median(kind, result.perSecond)
			length := rate / most * (bottom - 40)
			x := left + i*145 + j*(bar+4)
			fmt.Fprintf(&text, `<rect x="%d" y="%.0f" width="%d" height="%.0f" fill="%s"/><text x="%d" y="%.0f" `+
				`text-anchor="middle">%.1fk</text>`+"\n", x, bottom-length, bar, length,
				[]string{"#bbb", "#79a", "#146"}[j], x+bar/2, bottom-length-4, rate/1000)
		}
		fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d connections</text>\n",
			left+i*145+bar+bar/2+4, bottom+16, row.connections)
	}
	text.WriteString(`<text x="60" y="20">creates/s: Echo alone (grey), with validation (blue), ` +
		"providerd, durable (dark)</text>\n</svg>\n")
	return text.String()
}
