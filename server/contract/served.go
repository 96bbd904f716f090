package contract

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// consumersView returns the contract without x-go-type, x-request and x-violation, which only this project reads.
func consumersView(text []byte) []byte {
	hiddenExtensions := []string{"x-go-type", "x-request", "x-violation"}
	var kept []byte
	hidden := -1 // The indentation of the extension that is being left out.
	for line := range bytes.Lines(text) {
		content := bytes.TrimLeft(line, " ")
		indentation := len(line) - len(content)
		if hidden >= 0 && (indentation > hidden || len(bytes.TrimSpace(content)) == 0) {
			continue
		}
		hidden = -1
		if name, _, _ := bytes.Cut(content, []byte(":")); slices.Contains(hiddenExtensions, string(name)) {
			hidden = indentation
			continue
		}
		kept = append(kept, line...)
	}
	return kept
}

// toJSON converts a YAML document to JSON with members in the same order.
func toJSON(text []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	var converted bytes.Buffer
	encoder := jsontext.NewEncoder(&converted)
	if err := encodeNode(encoder, document.Content[0]); err != nil {
		return nil, fmt.Errorf("convert YAML to JSON: %w", err)
	}
	return converted.Bytes(), nil
}

func encodeNode(to *jsontext.Encoder, node *yaml.Node) (err error) {
	begin, end := jsontext.BeginObject, jsontext.EndObject
	switch {
	case node.Kind == yaml.ScalarNode:
		switch node.ShortTag() {
		case "!!null", "!!bool", "!!int", "!!float":
			err = to.WriteValue(jsontext.Value(node.Value))
		default:
			err = to.WriteToken(jsontext.String(node.Value))
		}
		if err != nil {
			return fmt.Errorf("%q in line %d: %w", node.Value, node.Line, err)
		}
		return nil
	case node.Kind == yaml.SequenceNode:
		begin, end = jsontext.BeginArray, jsontext.EndArray
	case node.Kind != yaml.MappingNode:
		return fmt.Errorf("line %d: an alias", node.Line)
	}
	// The names of a mapping are scalars, too.
	err = to.WriteToken(begin)
	for _, child := range node.Content {
		err = errors.Join(err, encodeNode(to, child))
	}
	return errors.Join(err, to.WriteToken(end))
}
