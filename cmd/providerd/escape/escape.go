// Package escape makes visible what a terminal would obey, hide or turn round: control characters, and those that
// change the direction of text or take no room.
package escape

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsHidden tells whether a character is to be escaped wherever it is shown: it is neither graphic nor a line end or a
// tab.
func IsHidden(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }

// JSON returns JSON in which hidden characters are escaped, and what is not UTF-8 is U+FFFD. It is read as the same
// value.
func JSON(text []byte) []byte {
	return replace(text, func(to []byte, r rune) []byte {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Appendf(to, `\u%04x\u%04x`, high, low)
		}
		return fmt.Appendf(to, `\u%04x`, r)
	})
}

// YAML is JSON for YAML. Hidden characters must be in scalars with double quotes.
func YAML(text []byte) []byte {
	return replace(text, func(to []byte, r rune) []byte {
		if r > 0xffff {
			return fmt.Appendf(to, `\U%08x`, r)
		}
		return fmt.Appendf(to, `\u%04x`, r)
	})
}

// replace returns the text itself where there is nothing to replace.
func replace(text []byte, appendEscaped func(to []byte, r rune) []byte) []byte {
	var result []byte
	done := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if IsHidden(r) || r == utf8.RuneError && size == 1 {
			result = appendEscaped(append(result, text[done:i]...), r)
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return text
	}
	return append(result, text[done:]...)
}

// JSONWriter hands JSON on as JSON returns it. Each write must have whole characters.
type JSONWriter struct{ To io.Writer }

// Write returns an error of the writer that it hands on to.
func (w JSONWriter) Write(text []byte) (int, error) {
	if _, err := w.To.Write(JSON(text)); err != nil {
		return 0, err //nolint:wrapcheck // It is that of another writer.
	}
	return len(text), nil
}
