package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// maxNesting is how deep a value may be; the contract allows no more.
const maxNesting = 64

const (
	idMember  = "id"
	stringTag = "!!str"
)

// bodyReader turns the YAML of one entry into JSON. A value that cannot be read becomes a fault, and null.
type bodyReader struct {
	schema *openapi3.Schema
	lookUp LookUp
	file   string
	used   *usage
	faults []Problem
	known  map[Problem]bool
	output *jsontext.Encoder
}

// read returns the entry; its Body is nil where that is not a mapping, or is too large.
func (b *bodyReader) read(node *yaml.Node) Entry {
	root := resolve(node)
	if root.Kind != yaml.MappingNode {
		b.fault(node, "must be a mapping of the fields of a provider")
		return Entry{}
	}
	var body bytes.Buffer
	b.output = jsontext.NewEncoder(&body)
	id, inner := b.readObject(root, 1)
	entry := Entry{ID: id, file: b.file, root: place{line: node.Line, column: node.Column, inner: inner}}
	b.used.bytes += int(b.output.OutputOffset())
	if excess := b.used.excess(); excess != "" {
		b.fault(node, excess)
		return entry
	}
	if b.output.OutputOffset() > maxEntryBytes {
		b.fault(node, fmt.Sprintf("has more than %d MiB as JSON, with what aliases repeat; no server takes it",
			maxEntryBytes>>20))
		return entry
	}
	entry.Body = bytes.Clone(body.Bytes())
	if entry.ID == "" {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(entry.Body, &named) == nil {
			entry.ID = named.Name
		}
	}
	return entry
}

// isFull tells whether the entry cannot be used, whatever follows.
func (b *bodyReader) isFull() bool {
	size := int(b.output.OutputOffset())
	return size > maxEntryBytes || b.used.bytes+size > maxBytes || b.used.isOver()
}

// readObject writes a mapping. That of the entry itself has an id, which is no field of the provider.
func (b *bodyReader) readObject(node *yaml.Node, depth int) (id string, inner []place) {
	b.write(jsontext.BeginObject)
	members := b.members(node, depth)
	inner = make([]place, 0, len(members))
	for _, one := range members {
		if b.isFull() {
			return id, inner
		}
		if depth == 1 && one.name == idMember {
			id = b.readID(one.value)
			continue
		}
		b.write(jsontext.String(one.name))
		value := b.readValue(one.value, depth)
		value.name = one.name
		inner = append(inner, value)
	}
	b.write(jsontext.EndObject)
	return id, inner
}

func (b *bodyReader) readID(node *yaml.Node) string {
	node = resolve(node)
	if node.Kind != yaml.ScalarNode || node.ShortTag() != stringTag {
		b.fault(node, "id must be a string; quote a number")
		return ""
	}
	id, err := expand(node.Value, b.lookUp)
	switch {
	case err != nil:
		b.fault(node, "id "+err.Error())
	case strings.TrimSpace(id) == "":
		b.fault(node, "id must not be blank")
		return ""
	}
	return id
}

// readValue writes any value; depth is how many mappings and lists it stands in.
func (b *bodyReader) readValue(node *yaml.Node, depth int) place {
	node = resolve(node)
	value := place{line: node.Line, column: node.Column}
	b.used.values++
	var err error
	switch {
	case node.Style&yaml.TaggedStyle != 0 && node.ShortTag() != stringTag:
		err = errTag
	case node.Kind == yaml.ScalarNode:
		err = b.readScalar(node)
	case depth >= maxNesting:
		err = fmt.Errorf("is nested deeper than %d levels", maxNesting)
	case node.Kind == yaml.MappingNode:
		_, value.inner = b.readObject(node, depth+1)
	default:
		value.inner = b.readArray(node, depth+1)
	}
	if err != nil {
		value.isBroken = true
		b.write(jsontext.Null)
		b.fault(node, string(b.output.StackPointer())+" "+err.Error())
	}
	return value
}

func (b *bodyReader) readArray(node *yaml.Node, depth int) []place {
	b.write(jsontext.BeginArray)
	inner := make([]place, 0, len(node.Content))
	for _, element := range node.Content {
		if b.isFull() {
			return inner
		}
		inner = append(inner, b.readValue(element, depth))
	}
	b.write(jsontext.EndArray)
	return inner
}

// readScalar writes a scalar, or nothing where it returns an error.
func (b *bodyReader) readScalar(node *yaml.Node) error {
	switch node.ShortTag() {
	case stringTag:
		// What is too large for a float64 is a number all the same.
		if number := jsontext.Value(node.Value); node.Style == 0 && number.Kind() == '0' && number.IsValid() {
			b.writeValue(number)
			return nil
		}
		return b.readText(node.Value)
	case "!!timestamp", "!!merge":
		b.write(jsontext.String(node.Value))
	case "!!null":
		b.write(jsontext.Null)
	case "!!bool":
		b.write(jsontext.Bool(strings.EqualFold(node.Value, "true")))
	case "!!int", "!!float":
		number := jsontext.Value(node.Value)
		if number.Kind() != '0' || !number.IsValid() {
			return errors.New("is not a number as JSON has them; write decimal digits, or quote it to make it a string")
		}
		b.writeValue(number)
	default:
		return errTag
	}
	return nil
}

// readText writes a string. Where the contract wants something else of a field, what its reference leads to is JSON.
func (b *bodyReader) readText(text string) error {
	value, err := expand(text, b.lookUp)
	if err != nil {
		return err
	}
	if !isReference(text) || b.takesString() {
		b.write(jsontext.String(value))
		return nil
	}
	if !jsontext.Value(value).IsValid() {
		return fmt.Errorf("refers to %s, which must be JSON in the environment, since the field is not a string",
			strings.Trim(text, "${}"))
	}
	b.writeValue(jsontext.Value(value))
	return nil
}

// takesString tells whether the value that is to be written may be a string by the contract.
func (b *bodyReader) takesString() bool {
	if b.output.StackDepth() > 1 {
		return true
	}
	field := b.schema.Properties[b.output.StackPointer().LastToken()]
	return field == nil || field.Value.Type.Is(openapi3.TypeString)
}

// fault tells a fault once, however many aliases lead to it.
func (b *bodyReader) fault(node *yaml.Node, detail string) {
	fault := Problem{Position: positionIn(b.file, node), Detail: detail}
	b.used.bytes += len(detail)
	if !b.known[fault] {
		b.used.faults++
		b.known[fault] = true
		b.faults = append(b.faults, fault)
	}
}

// write cannot fail: the output is in memory, names occur once, and YAML is UTF-8.
func (b *bodyReader) write(token jsontext.Token) { _ = b.output.WriteToken(token) }

func (b *bodyReader) writeValue(value jsontext.Value) { _ = b.output.WriteValue(value) }
