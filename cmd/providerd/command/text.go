package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/providerd/cmd/providerd/escape"
)

// mask stands for a secret that is not shown.
const mask = "********"

// printable escapes what would break the table or command the terminal.
func printable(text string) string {
	if !strings.ContainsFunc(text, escape.IsHidden) && !strings.ContainsAny(text, "\n\t") {
		return text
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// shortened cuts a text, at the end of a character.
func shortened(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

// count puts a number before a word.
func count(number int, one string, many ...string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, cmp.Or(strings.Join(many, ""), one+"s"))
}

// timestamp is a time as people and programs read it (RFC 3339), in UTC.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// plain is a string without its JSON, and any other value as it stands.
func plain(value json.RawMessage) string {
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return string(value)
	}
	return *text
}
