package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Undo returns the command that gives the fields of a provider their old values. Secrets are in files.
func Undo(pk int64, changes []FieldDiff) string {
	words := []string{fmt.Sprintf("providerd provider update %d", pk)}
	for _, change := range changes {
		words = append(words, item(change.Field, change.Old))
	}
	return strings.Join(words, " ")
}

// item returns the argument that sets a field.
func item(field string, value json.RawMessage) string {
	var text *string
	switch {
	case field == secretOfOAuth2:
		return field + "=@FILE"
	case field == secretOfDirectory:
		return field + ":=@FILE"
	case json.Unmarshal(value, &text) == nil && text != nil && isPlain(*text):
		return field + "=" + quoted(*text)
	default:
		return field + ":=" + quoted(string(value))
	}
}

// isPlain reports whether an argument can have a text without its JSON.
func isPlain(text string) bool {
	return !strings.HasPrefix(text, "@") && !strings.ContainsFunc(text, unicode.IsControl)
}

// quoted quotes a text for a POSIX shell (POSIX.1-2017, Shell Command Language, section 2.2.2).
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
