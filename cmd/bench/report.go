package main

import (
	"fmt"
	"os"
	"strings"
	"time"
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
		fmt.Fprintf(&text, " %d rows %.0f creates/s (%.2f), listening after %.2f s;", size.rows, median(size.perSecond),
			size.ratio(sizes[0]), median(size.startSeconds))
	}
	return strings.TrimSuffix(text.String(), ";") + ".\n"
}

// putInto replaces the figures in a README, which stand between two lines that say which command writes them.
func putInto(path, command, text string) error {
	begin, end := "<!-- figures: "+command+" writes them -->\n", "<!-- end of figures -->\n"
	readme, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read README: %w", err)
	}
	before, rest, begins := strings.Cut(string(readme), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the figures of %s", path, command)
	}
	if err := os.WriteFile(path, []byte(before+begin+"\n"+text+"\n"+end+after), 0o600); err != nil {
		return fmt.Errorf("write README: %w", err)
	}
	return nil
}

// plot draws the creates per second of some kinds as bars, in SVG.
func plot(rows []comparison, kinds []string, legend string) string {
	const height, left, bottom, bar, gap = 300, 60, 260, 36, 25
	group := len(kinds)*(bar+4) + gap
	var most float64
	for _, row := range rows {
		for _, kind := range kinds {
			most = max(most, row.median(kind, result.perSecond))
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+
		"\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", left+len(rows)*group, height)
	for i, row := range rows {
		for j, kind := range kinds {
			if len(row.results[kind]) == 0 {
				continue
			}
			rate := row.median(kind, result.perSecond)
			length := rate / most * (bottom - 40)
			x := left + i*group + j*(bar+4)
			fmt.Fprintf(&text, `<rect x="%d" y="%.0f" width="%d" height="%.0f" fill="%s"/><text x="%d" y="%.0f" `+
				`text-anchor="middle">%.1fk</text>`+"\n", x, bottom-length, bar, length,
				[]string{"#bbb", "#79a", "#146", "#013"}[j], x+bar/2, bottom-length-4, rate/1000)
		}
		fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d connections</text>\n",
			left+i*group+len(kinds)*(bar+4)/2, bottom+16, row.connections)
	}
	fmt.Fprintf(&text, "<text x=\"%d\" y=\"20\">%s</text>\n</svg>\n", left, legend)
	return text.String()
}
