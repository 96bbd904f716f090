// Package yamltext writes JSON as YAML.
package yamltext

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/escape"
)

// Element returns a JSON value as one element of a YAML list; several of them in a row are a list. Members keep their
// order and numbers their digits. change returns the text of each string except member names.
//
// It returns an error if the value is not valid JSON.
func Element(value []byte, change Change) ([]byte, error) {
	return write(value, change, func(node *yaml.Node) *yaml.Node {
		return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{node}}
	})
}

// Document is like Element, but returns a document.
func Document(value []byte, change Change) ([]byte, error) {
	return write(value, change, func(node *yaml.Node) *yaml.Node { return node })
}

func write(value []byte, change Change, form func(node *yaml.Node) *yaml.Node) ([]byte, error) {
	reader := reader{decoder: jsontext.NewDecoder(bytes.NewReader(value)), change: change}
	node, err := reader.read()
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	written, err := yaml.Dump(form(node), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return escape.YAML(written), nil
}

// Change returns the text for a string at a position in the value.
type Change func(at jsontext.Pointer, text string) string

// Same returns strings unchanged.
func Same(_ jsontext.Pointer, text string) string { return text }

// reader turns JSON into YAML nodes.
type reader struct {
	decoder *jsontext.Decoder
	change  Change
}

func (r reader) read() (*yaml.Node, error) {
	token, err := r.decoder.ReadToken()
	if err != nil {
		return nil, err //nolint:wrapcheck // It is wrapped above.
	}
	kind := token.Kind()
	if kind == '{' {
		return r.readAll(yaml.MappingNode)
	}
	if kind == '[' {
		return r.readAll(yaml.SequenceNode)
	}
	if kind == '"' {
		return scalar(r.change(r.decoder.StackPointer(), token.String())), nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
}

// readAll reads the rest of an object or array.
func (r reader) readAll(kind yaml.Kind) (*yaml.Node, error) {
	node := &yaml.Node{Kind: kind}
	for r.decoder.PeekKind() != '}' && r.decoder.PeekKind() != ']' {
		if kind == yaml.MappingNode {
			name, err := r.decoder.ReadToken()
			if err != nil {
				return nil, err //nolint:wrapcheck // It is wrapped above.
			}
			node.Content = append(node.Content, scalar(name.String()))
		}
		inner, err := r.read()
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, inner)
	}
	_, err := r.decoder.ReadToken()
	return node, err //nolint:wrapcheck // It is wrapped above.
}

func scalar(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsFunc(text, escape.IsHidden) {
		// YAML has escapes only in double-quoted scalars.
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
