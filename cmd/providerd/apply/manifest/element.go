package manifest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"example.com/providerd/cmd/providerd/escape"
)

// writeElement returns a JSON value as one element of a YAML list; several of them in a row are a list. Members keep
// their order and numbers their digits. change returns the text of each string except member names.
//
// It returns an error if the value is not valid JSON.
func writeElement(value []byte, change changeFunc) ([]byte, error) {
	reader := jsonReader{decoder: jsontext.NewDecoder(bytes.NewReader(value)), change: change}
	node, err := reader.read()
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{node}}
	written, err := yaml.Dump(list, yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return escape.YAML(written), nil
}

// changeFunc returns the text for a string at a position in the value.
type changeFunc func(at jsontext.Pointer, text string) string

// jsonReader turns JSON into YAML nodes.
type jsonReader struct {
	decoder *jsontext.Decoder
	change  changeFunc
}

func (r jsonReader) read() (*yaml.Node, error) {
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
		return textNode(r.change(r.decoder.StackPointer(), token.String())), nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
}

// readAll reads the rest of an object or array.
func (r jsonReader) readAll(kind yaml.Kind) (*yaml.Node, error) {
	node := &yaml.Node{Kind: kind}
	for r.decoder.PeekKind() != '}' && r.decoder.PeekKind() != ']' {
		if kind == yaml.MappingNode {
			name, err := r.decoder.ReadToken()
			if err != nil {
				return nil, err //nolint:wrapcheck // It is wrapped above.
			}
			node.Content = append(node.Content, textNode(name.String()))
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

func textNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.ContainsFunc(text, escape.IsHidden) {
		// YAML has escapes only in double-quoted scalars.
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
