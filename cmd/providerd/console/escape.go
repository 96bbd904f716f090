package console

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

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
