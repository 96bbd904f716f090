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

	"example.com/providerd/server/contract"
)

// maxNesting is the deepest nesting that the contract allows.
const maxNesting = 64

const (
	idMember  = "id"
	wasMember = "was"
	stringTag = "!!str"
)

// bodyReader converts the YAML of one entry to JSON. A value that cannot be converted becomes a problem and null.
type bodyReader struct {
	schema *openapi3.Schema
	values Values
	file   File
	used   *usage
	// outside has the referenced files outside the directory of the manifest.
	outside  map[string]bool
	problems []Problem
	known    map[Problem]bool
	// ids are the values of id and was.
	ids    map[string]string
	output *jsontext.Encoder
}

// read returns the entry. Its Body is nil if the entry is not a mapping or is too large.
func (b *bodyReader) read(node *yaml.Node) Entry {
	root := resolve(node)
	if root.Kind != yaml.MappingNode {
		b.report(node, "must be a mapping with the fields of a provider")
		return Entry{}
	}
	var body bytes.Buffer
	b.output = jsontext.NewEncoder(&body)
	b.ids = map[string]string{}
	inner := b.readObject(root, 1)
	entry := Entry{
		ID: b.ids[idMember], Was: b.ids[wasMember], file: b.file.Name,
		root: place{line: node.Line, column: node.Column, inner: inner},
	}
	b.used.bytes += int(b.output.OutputOffset())
	if excess := b.used.excess(); excess != "" {
		b.report(node, excess)
		return entry
	}
	if b.output.OutputOffset() > maxEntryBytes {
		b.report(node, fmt.Sprintf("has more than %d MiB as JSON with its aliases expanded; no server accepts it",
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

// isFull reports whether the entry has exceeded a limit.
func (b *bodyReader) isFull() bool {
	size := int(b.output.OutputOffset())
	return size > maxEntryBytes || b.used.bytes+size > maxBytes || b.used.isOver()
}

// readObject writes a mapping. At the top level it sets the ids, which are not fields of the provider.
func (b *bodyReader) readObject(node *yaml.Node, depth int) []place {
	b.write(jsontext.BeginObject)
	members := b.members(node, depth)
	inner := make([]place, 0, len(members))
	for _, member := range members {
		if b.isFull() {
			return inner
		}
		if depth == 1 && (member.name == idMember || member.name == wasMember) {
			b.ids[member.name] = b.readID(member.name, member.value)
			continue
		}
		b.write(jsontext.String(member.name))
		value := b.readValue(member.value, depth)
		value.name = member.name
		inner = append(inner, value)
	}
	b.write(jsontext.EndObject)
	return inner
}

// readID returns the value of id or was.
func (b *bodyReader) readID(name string, node *yaml.Node) string {
	node = resolve(node)
	if node.Kind != yaml.ScalarNode || node.ShortTag() != stringTag {
		b.report(node, name+" must be a string; quote a number")
		return ""
	}
	id, err := b.expand(node.Value)
	switch {
	case err != nil:
		b.report(node, name+" "+err.Error())
	case strings.TrimSpace(id) == "":
		b.report(node, name+" must not be blank")
		return ""
	}
	return id
}

// readValue writes a value that is nested in depth mappings and lists.
func (b *bodyReader) readValue(node *yaml.Node, depth int) place {
	node = resolve(node)
	value := place{line: node.Line, column: node.Column}
	b.used.values++
	var err error
	switch {
	case node.Style&yaml.TaggedStyle != 0 && node.ShortTag() != stringTag:
		err = tagError(node.ShortTag())
	case node.Kind == yaml.ScalarNode:
		err = b.readScalar(node)
	case depth >= maxNesting:
		err = fmt.Errorf("is nested deeper than %d levels", maxNesting)
	case node.Kind == yaml.MappingNode:
		value.inner = b.readObject(node, depth+1)
	case b.isListOfLines():
		err = b.readLines(node)
	default:
		value.inner = b.readArray(node, depth+1)
	}
	if err != nil {
		value.isBroken = true
		b.write(jsontext.Null)
		b.report(node, FieldName(string(b.output.StackPointer()))+" "+err.Error())
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

// isListOfLines reports whether the next value is the one text that can be written as a list of its lines.
func (b *bodyReader) isListOfLines() bool {
	return b.output.StackDepth() == 1 && b.output.StackPointer().LastToken() == "redirect_uris"
}

// readLines writes a list of texts as the lines of one. If it returns an error, it has written nothing.
func (b *bodyReader) readLines(list *yaml.Node) error {
	lines := make([]string, len(list.Content))
	for i, element := range list.Content {
		element = resolve(element)
		if element.Kind != yaml.ScalarNode || element.ShortTag() != stringTag {
			return errors.New("must be a list of URIs")
		}
		var err error
		if lines[i], err = b.expand(element.Value); err != nil {
			return err
		}
		if b.used.values++; b.isFull() {
			return nil
		}
	}
	b.write(jsontext.String(strings.Join(lines, "\n")))
	return nil
}

// readScalar writes a scalar. If it returns an error, it has written nothing.
func (b *bodyReader) readScalar(node *yaml.Node) error {
	switch node.ShortTag() {
	case stringTag:
		// YAML takes a number too large for a float64 for a string.
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
			return errors.New("is not a JSON number; write decimal digits, or quote it to make it a string")
		}
		b.writeValue(number)
	default:
		return tagError(node.ShortTag())
	}
	return nil
}

// readText writes a string. If the field is not a string in the contract, the value of a reference is JSON.
func (b *bodyReader) readText(text string) error {
	value, err := b.expand(text)
	if err != nil {
		return err
	}
	if !isReference(text) || b.takesString() {
		b.write(jsontext.String(value))
		return nil
	}
	if err := contract.CheckJSON([]byte(value)); err != nil {
		return fmt.Errorf("refers to %s, whose value must be JSON, because the field is not a string: %w",
			strings.Trim(text, "${}"), err)
	}
	b.writeValue(jsontext.Value(value))
	return nil
}

// takesString reports whether the contract allows a string for the next value.
func (b *bodyReader) takesString() bool {
	if b.output.StackDepth() > 1 {
		return true
	}
	field := b.schema.Properties[b.output.StackPointer().LastToken()]
	return field == nil || field.Value.Type.Is(openapi3.TypeString)
}

// report adds a problem, once for all aliases of the value.
func (b *bodyReader) report(node *yaml.Node, detail string) {
	problem := Problem{Position: positionIn(b.file.Name, node), Detail: detail}
	b.used.bytes += len(detail)
	if !b.known[problem] {
		b.used.problems++
		b.known[problem] = true
		b.problems = append(b.problems, problem)
	}
}

// write cannot fail: the output is in memory, names are unique, and YAML is UTF-8.
func (b *bodyReader) write(token jsontext.Token) { _ = b.output.WriteToken(token) }

func (b *bodyReader) writeValue(value jsontext.Value) { _ = b.output.WriteValue(value) }
