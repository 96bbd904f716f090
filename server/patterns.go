package server

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// The patterns of the contract that most bodies meet, which matchers written by hand read several times as fast as a
// regular expression does. The contract stays the only source: a pattern that is not among these, because the contract
// has changed, is compiled.
const (
	textPattern = `^[^\x00]*$`
	namePattern = `^[^\x00]*[^\s\x00][^\x00]*$`
	uuidPattern = `^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`
	urisPattern = `^(?:` + uriPattern + `(?:\r?\n` + uriPattern + `)*(?:\r?\n)?)?$`
	uriPattern  = `[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7F-\xA0#\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]+`
	// scriptPattern finds the schemes that run what is in the URI.
	scriptPattern = `(?:^|\n)(?:[Jj][Aa][Vv][Aa][Ss][Cc][Rr][Ii][Pp][Tt]|[Dd][Aa][Tt][Aa]|` +
		`[Vv][Bb][Ss][Cc][Rr][Ii][Pp][Tt]):`
)

// matcher tells whether a text matches a pattern.
type matcher func(text string) bool

var _ openapi3.RegexMatcher = matcher(nil)

// MatchString is the method that kin-openapi asks.
func (m matcher) MatchString(text string) bool { return m(text) }

// compilePattern returns the matcher of a pattern.
func compilePattern(pattern string) (openapi3.RegexMatcher, error) {
	switch pattern {
	case textPattern:
		return matcher(isText), nil
	case namePattern:
		return matcher(isName), nil
	case uuidPattern:
		return matcher(isUUID), nil
	case urisPattern:
		return matcher(areURIs), nil
	case scriptPattern:
		return matcher(hasScript), nil
	}
	compiled, err := regexp.Compile(goPattern(pattern))
	if err != nil {
		return nil, fmt.Errorf("compile a pattern of the contract: %w", err)
	}
	return compiled, nil
}

// goPattern writes the code points of a pattern of ECMA 262 as Go does.
func goPattern(pattern string) string {
	return regexp.MustCompile(`\\u([0-9A-F]{4})`).ReplaceAllString(pattern, `\x{$1}`)
}

func isText(text string) bool { return strings.IndexByte(text, 0) < 0 }

func isName(text string) bool {
	return isText(text) && strings.Trim(text, "\t\n\f\r ") != ""
}

func isUUID(text string) bool {
	const length = len("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01")
	if len(text) != length {
		return false
	}
	for i := range length {
		switch i {
		case 8, 13, 18, 23:
			if text[i] != '-' {
				return false
			}
		default:
			if !isHexDigit(text[i]) {
				return false
			}
		}
	}
	return true
}

func isHexDigit(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func areURIs(text string) bool {
	for line := range strings.Lines(text) {
		if content, ended := strings.CutSuffix(line, "\n"); ended {
			line = strings.TrimSuffix(content, "\r")
		}
		if !isURI(line) {
			return false
		}
	}
	return true
}

func isURI(line string) bool {
	scheme, rest, ok := strings.Cut(line, ":")
	return ok && rest != "" && isScheme(scheme) && !strings.ContainsFunc(rest, isOutsideURI)
}

func isScheme(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !isLetter(c) && (i == 0 || !isDigit(c) && c != '+' && c != '.' && c != '-') {
			return false
		}
	}
	return text != ""
}

// isOutsideURI tells white space, control characters and "#".
func isOutsideURI(c rune) bool {
	switch {
	case c <= 0x20, 0x7F <= c && c <= 0xA0, 0x2000 <= c && c <= 0x200A:
		return true
	default:
		return slices.Contains([]rune{'#', 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}, c)
	}
}

func hasScript(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		scheme, _, ok := strings.Cut(line, ":")
		for _, script := range []string{"javascript", "data", "vbscript"} {
			if ok && equalFoldASCII(scheme, script) {
				return true
			}
		}
	}
	return false
}

// equalFoldASCII folds no letters but those of ASCII, as the pattern does: strings.EqualFold takes U+017F for an s.
func equalFoldASCII(text, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
