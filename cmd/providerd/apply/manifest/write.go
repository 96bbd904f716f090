package manifest

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/console"
)

// Writer writes a manifest.
type Writer struct {
	Out  io.Writer
	kind string
}

// Entry writes an entry: one JSON object with the member id. Entries of a kind must follow each other. Read returns the
// same values, order and digits, except the string at reference, which has a tag if it is empty.
func (w *Writer) Entry(kind string, body []byte, reference jsontext.Pointer) error {
	reader := elementReader{Decoder: jsontext.NewDecoder(bytes.NewReader(body)), reference: reference}
	element, err := reader.read()
	if err != nil {
		return fmt.Errorf("write entry: %w", err)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{element}}
	text, err := yaml.Dump(list, yaml.WithLineWidth(-1), yaml.WithUnicode(!reader.hasHidden))
	if err != nil {
		return fmt.Errorf("write entry: %w", err)
	}
	if kind != w.kind {
		w.kind = kind
		text = append([]byte(kind+":\n"), text...)
	}
	return w.write(text)
}

// Close completes the manifest, which must not be empty. It returns an error of the output.
func (w *Writer) Close(kind string) error {
	if w.kind != "" {
		return nil
	}
	return w.write([]byte(kind + ": []\n"))
}

func (w *Writer) write(text []byte) error {
	if _, err := w.Out.Write(text); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

// otherType matches strings that readers of YAML 1.1 take for booleans, numbers, dates or other types.
var otherType = regexp.MustCompile(`(?i)^([yn~=]|<<|yes|no|on|off|true|false|null|[-+]?(\.(inf|nan)|0[xbo][0-9a-f_]+|` +
	`\.?[0-9][0-9_,]*(:[0-9]+)*(\.[0-9_]*)?(e[-+]?[0-9]+)?)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t ].*)?)$`)

// elementReader turns JSON into YAML nodes.
type elementReader struct {
	*jsontext.Decoder
	reference jsontext.Pointer
	// hasHidden is true if a string has a character that a terminal would obey or hide.
	hasHidden bool
}

func (r *elementReader) read() (*yaml.Node, error) {
	token, err := r.ReadToken()
	if err != nil {
		return nil, err //nolint:wrapcheck // It is wrapped above.
	}
	switch kind := byte(token.Kind()); kind {
	case '{', '[':
		return r.readAll(map[byte]yaml.Kind{'{': yaml.MappingNode, '[': yaml.SequenceNode}[kind])
	case '"':
		text := token.String()
		r.hasHidden = r.hasHidden || strings.ContainsFunc(text, console.IsHidden)
		// In an object, the number of tokens is odd after a name.
		container, count := r.StackIndex(r.StackDepth())
		isName, isReference := container == '{' && count%2 == 1, r.StackPointer() == r.reference
		if !isName && !isReference {
			text = strings.ReplaceAll(text, "${", "$${")
		}
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: stringTag, Value: text}
		if isReference && text == "" || foreign.MatchString(text) {
			node.Style = yaml.TaggedStyle | yaml.SingleQuotedStyle
		} else if otherType.MatchString(text) {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
}

func (r *elementReader) readAll(kind yaml.Kind) (*yaml.Node, error) {
	node := &yaml.Node{Kind: kind}
	for r.PeekKind() != '}' && r.PeekKind() != ']' {
		inner, err := r.read()
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, inner)
	}
	_, err := r.ReadToken()
	return node, err //nolint:wrapcheck // It is wrapped above.
}
