package manifest

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// syntaxProblem returns the position and description of invalid YAML.
func (r *reader) syntaxProblem(text []byte, err error) Problem {
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return Problem{Position: Position{File: r.file.Name}, Detail: "cannot be read as YAML"}
	}
	detail := "is not valid YAML: " + wrong.Message
	if strings.HasPrefix(wrong.Message, "unknown anchor") {
		// The library's message contains the name of the anchor, which may be an unquoted value.
		detail = "refers to an unknown anchor; anchors end with their document, at ---; quote a value that begins with *"
	}
	if strings.Contains(wrong.Message, "cannot start any token") {
		detail += "; quote a value that begins with @ or `"
	}
	at := Position{File: r.file.Name, Line: wrong.Mark.Line, Column: wrong.Mark.Column}
	if at.Line == 0 {
		// For an invalid character, the library reports only the offset.
		before := text[:min(wrong.Mark.Index, len(text))]
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		at = Position{File: r.file.Name, Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(line)}
	}
	if isTab(text, at) {
		detail = "is not valid YAML: indent with spaces, not tabs"
	}
	if bytes.Contains(text, []byte("{{")) {
		detail += "; render templates such as {{ x }} first"
	}
	return Problem{Position: at, Detail: detail}
}

// findNoBreakSpaces reports the first line that is indented with no-break spaces, which YAML takes for letters.
func (r *reader) findNoBreakSpaces(text []byte) {
	if at := regexp.MustCompile(`(?m)^[ -]*\x{a0}`).FindIndex(text); at != nil {
		line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
		r.report(&yaml.Node{Line: line, Column: 1}, "is indented with no-break spaces; use spaces")
	}
}

// isTab reports whether the character at a position is a tab.
func isTab(text []byte, at Position) bool {
	line := 0
	for part := range bytes.Lines(text) {
		if line++; line == at.Line {
			characters := []rune(string(part))
			return at.Column <= len(characters) && characters[max(at.Column, 1)-1] == '\t'
		}
	}
	return false
}

// otherFormat describes a document of another system; "" if it is none.
func otherFormat(root *yaml.Node) string {
	names := map[string]bool{}
	for i := 0; i < len(root.Content); i += 2 {
		names[root.Content[i].Value] = true
	}
	switch {
	case names["apiVersion"] && names["kind"]:
		return "is a Kubernetes object"
	case names["entries"]:
		return "is a blueprint"
	default:
		return ""
	}
}
