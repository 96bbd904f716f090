package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Printable escapes characters that would break a table or control the terminal.
func Printable(text string) string {
	if !strings.ContainsFunc(text, IsHidden) && !strings.ContainsAny(text, "\n\t") {
		return text
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Visible is like Printable for a string of several lines.
func Visible(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// Truncate shortens a string to at most maxBytes and an ellipsis, at the end of a character.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

// Count returns a number with a noun; the plural adds an s unless it is given.
func Count(number int, singular string, plural ...string) string {
	if number == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %s", number, cmp.Or(strings.Join(plural, ""), singular+"s"))
}

// Timestamp formats a time in UTC (RFC 3339).
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Unquote returns the text of a JSON string, and any other value unchanged.
func Unquote(value json.RawMessage) string {
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return string(value)
	}
	return *text
}
