package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/escape"
)

// Mask stands for a secret that is not shown.
const Mask = "********"

// Printable escapes what would break the table or command the terminal.
func Printable(text string) string {
	if !strings.ContainsFunc(text, escape.IsHidden) && !strings.ContainsAny(text, "\n\t") {
		return text
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Truncate cuts a text, at the end of a character.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

// Count puts a number before a word.
func Count(number int, one string, many ...string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, cmp.Or(strings.Join(many, ""), one+"s"))
}

// Timestamp is a time as people and programs read it (RFC 3339), in UTC.
func Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Plain is a string without its JSON, and any other value as it stands.
func Unquote(value json.RawMessage) string {
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return string(value)
	}
	return *text
}
