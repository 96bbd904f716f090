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
	places map[jsontext.Pointer]Position
	broken []jsontext.Pointer
	faults []Fault
	known  map[Fault]bool
	// steps counts the values, which aliases could multiply without end, up to maxSteps.
	steps, maxSteps int
	output          *jsontext.Encoder
}

func newBodyReader(schema *openapi3.Schema, file string, maxSteps int, lookUp LookUp) *bodyReader {
	return &bodyReader{
		schema: schema, lookUp: lookUp, file: file, places: map[jsontext.Pointer]Position{}, known: map[Fault]bool{},
		maxSteps: maxSteps,
	}
}

// read returns the entry; its Body is nil where that is not a mapping.
func (b *bodyReader) read(node *yaml.Node) Entry {
	root := resolve(node)
	if root.Kind != yaml.MappingNode {
		b.fault(node, "must be a mapping of the fields of a provider")
		return Entry{}
	}
	var body bytes.Buffer
	b.output = jsontext.NewEncoder(&body)
	id := b.readObject(root, "", 1)
	b.places[""] = positionIn(b.file, node)
	if b.steps > b.maxSteps {
		b.fault(node, fmt.Sprintf("has aliases that make more than %d values of it", b.maxSteps))
	}
	if id == "" {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(body.Bytes(), &named) == nil {
			id = named.Name
		}
	}
	return Entry{ID: id, Body: body.Bytes(), places: b.places, broken: b.broken}
}

// readObject writes a mapping. That of the entry itself has an id, which is no field of the provider.
func (b *bodyReader) readObject(node *yaml.Node, at jsontext.Pointer, depth int) (id string) {
	b.write(jsontext.BeginObject)
	for _, one := range b.members(node, depth) {
		if at == "" && one.name == idMember {
			id = b.readID(one.value)
			continue
		}
		b.write(jsontext.String(one.name))
		b.readValue(one.value, at.AppendToken(one.name), depth)
	}
	b.write(jsontext.EndObject)
	return id
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
func (b *bodyReader) readValue(node *yaml.Node, at jsontext.Pointer, depth int) {
	node = resolve(node)
	b.places[at] = positionIn(b.file, node)
	b.steps++
	switch {
	case b.steps > b.maxSteps:
		b.write(jsontext.Null)
	case node.Style&yaml.TaggedStyle != 0 && node.ShortTag() != stringTag:
		b.breakAt(node, at, errTag.Error())
	case node.Kind == yaml.ScalarNode:
		if err := b.readScalar(node, at); err != nil {
			b.breakAt(node, at, err.Error())
		}
	case depth >= maxNesting:
		b.breakAt(node, at, fmt.Sprintf("is nested deeper than %d levels", maxNesting))
	case node.Kind == yaml.MappingNode:
		b.readObject(node, at, depth+1)
	default:
		b.readArray(node, at, depth+1)
	}
}

func (b *bodyReader) readArray(node *yaml.Node, at jsontext.Pointer, depth int) {
	b.write(jsontext.BeginArray)
	for i, element := range node.Content {
		b.readValue(element, at.AppendToken(fmt.Sprint(i)), depth)
	}
	b.write(jsontext.EndArray)
}

// readScalar writes a scalar, or nothing where it returns an error.
func (b *bodyReader) readScalar(node *yaml.Node, at jsontext.Pointer) error {
	switch node.ShortTag() {
	case stringTag:
		// What is too large for a float64 is a number all the same.
		if number := jsontext.Value(node.Value); node.Style == 0 && number.Kind() == '0' && number.IsValid() {
			b.writeValue(number)
			return nil
		}
		return b.readText(node.Value, at)
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
func (b *bodyReader) readText(text string, at jsontext.Pointer) error {
	value, err := expand(text, b.lookUp)
	if err != nil {
		return err
	}
	if !isReference(text) || b.takesString(at) {
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

// takesString tells whether a value may be a string by the contract.
func (b *bodyReader) takesString(at jsontext.Pointer) bool {
	field := b.schema.Properties[strings.TrimPrefix(string(at), "/")]
	return field == nil || field.Value.Type.Is(openapi3.TypeString)
}

// breakAt writes null in place of a value that has a fault.
func (b *bodyReader) breakAt(node *yaml.Node, at jsontext.Pointer, detail string) {
	b.write(jsontext.Null)
	b.broken = append(b.broken, at)
	b.fault(node, string(at)+" "+detail)
}

// fault tells a fault once, however many aliases lead to it.
func (b *bodyReader) fault(node *yaml.Node, detail string) {
	fault := Fault{Position: positionIn(b.file, node), Detail: detail}
	if !b.known[fault] {
		b.known[fault] = true
		b.faults = append(b.faults, fault)
	}
}

// write cannot fail: the output is in memory, names occur once, and YAML is UTF-8.
func (b *bodyReader) write(token jsontext.Token) { _ = b.output.WriteToken(token) }

func (b *bodyReader) writeValue(value jsontext.Value) { _ = b.output.WriteValue(value) }
