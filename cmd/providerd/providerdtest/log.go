package providerdtest

import (
	"bufio"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// LogCount counts the requests in a log, the bytes of their lines, and the dropped lines and the notes that report
// them.
type LogCount struct{ Requests, Bytes, Dropped, Notes int }

// Read adds the lines of a log.
func (c *LogCount) Read(log io.Reader) error {
	note := regexp.MustCompile(`level=WARN msg="log lines dropped" count=(\d+)$`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if match := note.FindStringSubmatch(lines.Text()); match != nil {
			dropped, _ := strconv.Atoi(match[1])
			c.Dropped += dropped
			c.Notes++
		} else if strings.Contains(lines.Text(), " msg=request ") {
			c.Requests++
			c.Bytes += len(lines.Text()) + len("\n")
		}
	}
	return lines.Err()
}
