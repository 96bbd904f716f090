// Package escape escapes characters that a terminal would obey or hide: control characters, and those that change the
// direction of text or have no width.
package escape

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsHidden reports whether a character must be escaped before it is shown: it is not graphic, a line feed or a tab.
func IsHidden(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }

// JSON returns the same JSON value with hidden characters escaped and invalid UTF-8 replaced by U+FFFD.
func JSON(text []byte) []byte {
	return replace(text, func(to []byte, r rune) []byte {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Appendf(to, `\u%04x\u%04x`, high, low)
		}
		return fmt.Appendf(to, `\u%04x`, r)
	})
}

// YAML is like JSON, for YAML whose hidden characters are all in double-quoted scalars.
func YAML(text []byte) []byte {
	return replace(text, func(to []byte, r rune) []byte {
		if r > 0xffff {
			return fmt.Appendf(to, `\U%08x`, r)
		}
		return fmt.Appendf(to, `\u%04x`, r)
	})
}

// replace returns text itself if there is nothing to replace.
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

// JSONWriter writes what JSON returns. Each write must consist of whole characters.
type JSONWriter struct{ To io.Writer }

// Write returns the error of To.
func (w JSONWriter) Write(text []byte) (int, error) {
	if _, err := w.To.Write(JSON(text)); err != nil {
		return 0, err //nolint:wrapcheck // The error of To.
	}
	return len(text), nil
}
