package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
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

// maskTokens returns the text with only the prefix of each access token.
func maskTokens(text string) string {
	return regexp.MustCompile(`pvd_[0-9A-Za-z]{7,}`).ReplaceAllString(text, "pvd_…")
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

// IsHidden reports whether a terminal would obey or hide a character, such as one that changes the direction of text,
// so that it must be escaped: it is not graphic, a line feed or a tab.
func IsHidden(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }

// EscapeJSON returns the same JSON value with hidden characters escaped and invalid UTF-8 replaced by U+FFFD.
func EscapeJSON(text []byte) []byte {
	if utf8.Valid(text) && !bytes.ContainsFunc(text, IsHidden) {
		return text
	}
	var escaped []byte
	for _, r := range string(text) {
		if !IsHidden(r) {
			escaped = utf8.AppendRune(escaped, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return escaped
}

// JSONWriter writes what EscapeJSON returns. Each write must consist of whole characters.
type JSONWriter struct{ To io.Writer }

// Write returns the error of To.
func (w JSONWriter) Write(text []byte) (int, error) {
	if _, err := w.To.Write(EscapeJSON(text)); err != nil {
		return 0, err //nolint:wrapcheck // The error of To.
	}
	return len(text), nil
}
