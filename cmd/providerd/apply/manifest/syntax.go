package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

func (r *reader) reportSyntax(err error) {
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.report(&yaml.Node{}, "cannot be read as YAML")
		return
	}
	detail := "is not valid YAML: " + wrong.Message
	for _, known := range [][2]string{
		{"did not find expected", "check the indentation, brackets and quotes on this line and the line above"},
		{"could not find expected ':'", "indent each line of a string after | or >, and write a field as name: value"},
		{"Unicode character escape", "write the character itself"},
		{"UTF-8", "save the file as UTF-8"},
		{"cannot start any token", "quote a value that begins with @ or `"},
	} {
		if strings.Contains(wrong.Message, known[0]) {
			detail += "; " + known[1]
		}
	}
	if strings.HasPrefix(wrong.Message, "unknown anchor") {
		// The library's message contains the name of the anchor, which may be an unquoted value.
		detail = "refers to an unknown anchor; define it earlier in the same document, or quote a value that begins with *"
	}
	at, offset := yaml.Node{Line: wrong.Mark.Line, Column: wrong.Mark.Column}, wrong.Mark.Index
	if conflict := regexp.MustCompile(`(?m)^<{7} `).FindIndex(r.file.Text); conflict != nil {
		at.Line, offset, detail = 0, conflict[0], "is a conflict marker of git; resolve the merge"
	}
	if at.Line == 0 {
		// For an invalid character, the library reports only the offset.
		before := r.file.Text[:min(offset, len(r.file.Text))]
		at.Line = 1 + bytes.Count(before, []byte("\n"))
		at.Column = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	}
	if line := []rune(r.line(at.Line)); at.Column <= len(line) && line[max(at.Column, 1)-1] == '\t' {
		detail = "is not valid YAML: indent with spaces, not tabs"
	}
	if bytes.Contains(r.file.Text, []byte("{{")) {
		detail += "; render templates such as {{ x }} first"
	}
	r.report(&at, detail)
}

// joinSurrogates replaces pairs of surrogates, by which JSON (RFC 8259, section 7), but not YAML, escapes characters.
func joinSurrogates(text []byte) []byte {
	escape := regexp.MustCompile(`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
	return escape.ReplaceAllFunc(text, func(found []byte) []byte {
		var character string
		// Two reverse solidi are no string.
		_ = json.Unmarshal(slices.Concat([]byte(`"`), found, []byte(`"`)), &character)
		if character == `\` {
			return found
		}
		return []byte(character)
	})
}

// reportNoBreakSpaces reports the first line that is indented with no-break spaces, which YAML takes for letters.
func (r *reader) reportNoBreakSpaces() {
	if at := regexp.MustCompile(`(?m)^ *\x{a0}`).FindIndex(r.file.Text); at != nil {
		line := 1 + bytes.Count(r.file.Text[:at[0]], []byte("\n"))
		r.report(&yaml.Node{Line: line, Column: 1}, "is indented with no-break spaces; use spaces")
	}
}

// line returns a line of the current file; "" if it does not exist.
func (r *reader) line(number int) string {
	lines := bytes.SplitN(r.file.Text, []byte("\n"), number+1)
	return string(lines[min(number, len(lines))-1])
}

// otherFormat describes a document of another system; "" if it is none.
func otherFormat(root *yaml.Node) string {
	const sample = "; write a file such as oauth2: [{name: Wiki, authorization_flow: " +
		"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01, redirect_uris: [https://wiki.example.com/callback]}]"
	names := map[string]bool{}
	for pair := range slices.Chunk(root.Content, 2) {
		names[pair[0].Value] = true
	}
	switch {
	case names["apiVersion"] && names["kind"]:
		return "is a Kubernetes object" + sample
	case names["entries"]:
		return "is a blueprint" + sample
	case names["$schema"] && names["additionalProperties"]:
		return "is a JSON Schema; pass the files that list providers; of a directory, files named *.schema.json are not read"
	case names["sops"]:
		return "is encrypted; decrypt it with sops"
	default:
		return ""
	}
}
