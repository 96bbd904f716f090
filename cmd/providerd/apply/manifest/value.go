package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"example.com/providerd/server/contract"
)

// FieldName returns how messages name the value at a JSON pointer: a field by its name, a value in one by the pointer.
func FieldName(pointer string) string {
	if name := jsontext.Pointer(pointer).LastToken(); "/"+name == pointer {
		return "`" + name + "`"
	}
	return "`" + pointer + "`"
}

// maxNesting is the deepest nesting that the contract allows.
const maxNesting = 64

const (
	idMember  = "id"
	wasMember = "was"
	stringTag = "!!str"
	// redirectURIs is a string of lines that an entry can have as a list.
	redirectURIs = "redirect_uris"
	clientSecret = "client_secret"
)

// entryReader converts the YAML of one entry to JSON. A value that cannot be converted becomes a problem and null.
type entryReader struct {
	*reader
	Entry
	schema *openapi3.Schema
	// path leads to the current value.
	path []string
	// limit is the number of bytes in all files at which the entry is too long.
	limit int
}

func (e *entryReader) isFull() bool { return e.used.bytes > e.limit || e.used.isOver() }

// addMembers adds the members of a mapping, and those that << merges into it under other names.
func (e *entryReader) addMembers(members map[string]*yaml.Node, mapping *yaml.Node, depth int) {
	own := map[string]bool{}
	var merged []*yaml.Node
	for pair := range slices.Chunk(mapping.Content, 2) {
		key, name, value := pair[0], resolve(pair[0]), pair[1]
		switch {
		case name.Kind != yaml.ScalarNode:
			e.report(key, "the name of a member must be a string; quote it, or render templates such as {{ x }} first")
		case name.ShortTag() == "!!merge" && resolve(value).Kind == yaml.SequenceNode:
			merged = append(merged, resolve(value).Content...)
		case name.ShortTag() == "!!merge":
			merged = append(merged, value)
		case own[name.Value]:
			e.report(name, "`"+name.Value+"` appears twice; remove one")
		default:
			own[name.Value] = true
			if members[name.Value] == nil {
				members[name.Value] = value
			}
		}
	}
	for _, node := range merged {
		e.merge(members, node, depth+1)
	}
}

// merge adds the members of a mapping that << names.
func (e *entryReader) merge(members map[string]*yaml.Node, node *yaml.Node, depth int) {
	source := resolve(node)
	e.used.values += 1 + len(source.Content)/2
	switch {
	case e.isFull():
	case depth > maxNesting:
		e.report(node, "merges mappings nested deeper than the contract allows")
	case source.Kind != yaml.MappingNode:
		e.report(node, "<< must be an alias of a mapping, such as *defaults, or a list of such aliases; quote it if it is "+
			"the name of a field")
	default:
		e.addMembers(members, source, depth)
	}
}

func (e *entryReader) readMembers(members map[string]*yaml.Node) map[string]any {
	object := make(map[string]any, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		object[name] = e.readValue(members[name], name)
	}
	return object
}

// readValue converts a member or element of the current value.
func (e *entryReader) readValue(node *yaml.Node, name string) any {
	if e.isFull() {
		return nil
	}
	e.path = append(e.path, name)
	defer func() { e.path = e.path[:len(e.path)-1] }()
	e.used.values++
	e.used.bytes += 1 + len(name)
	node = resolve(node)
	value, err := e.convert(node)
	if err != nil {
		e.report(node, FieldName(string(e.pointer()))+" "+err.Error())
		value = nil
	}
	if len(e.path) == 1 || len(e.path) == 2 && e.schema.Properties[e.path[0]] != nil {
		e.places[e.pointer()] = place{e.position(node), err != nil}
	}
	return value
}

func (e *entryReader) pointer() (pointer jsontext.Pointer) {
	for _, name := range e.path {
		pointer = pointer.AppendToken(name)
	}
	return pointer
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

func isTagged(node *yaml.Node) bool { return node.Style&yaml.TaggedStyle != 0 }

func (e *entryReader) convert(node *yaml.Node) (any, error) {
	switch {
	case isTagged(node) && node.ShortTag() != stringTag:
		return nil, tagError(node.ShortTag())
	case node.Kind == yaml.ScalarNode:
		return e.scalar(node)
	case node.Kind == yaml.MappingNode && len(node.Content) > 0 && resolve(node.Content[0]).Kind == yaml.MappingNode:
		// YAML reads a template without quotes as a mapping whose key is a mapping.
		return nil, errors.New(templateRemedy)
	case len(e.path) >= maxNesting:
		return nil, fmt.Errorf("is nested deeper than %d levels", maxNesting)
	case node.Kind == yaml.MappingNode:
		members := map[string]*yaml.Node{}
		e.addMembers(members, node, len(e.path))
		return e.readMembers(members), nil
	}
	list := make([]any, len(node.Content))
	for i, element := range node.Content {
		list[i] = e.readValue(element, strconv.Itoa(i))
	}
	if slices.Equal(e.path, []string{redirectURIs}) {
		return joined(list)
	}
	return list, nil
}

// joined returns a list of texts as the lines of one, as the contract has them.
func joined(list []any) (string, error) {
	lines := make([]string, len(list))
	for i, element := range list {
		line, ok := element.(string)
		if !ok {
			return "", errors.New("must be a list of strings, each a URI; of an object such as {matching_mode: strict, " +
				"url: URI}, write the URI alone")
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n"), nil
}

func (e *entryReader) scalar(node *yaml.Node) (any, error) {
	number := jsontext.Value(node.Value)
	isNumber := number.Kind() == '0' && number.IsValid()
	e.used.bytes += len(node.Value)
	switch node.ShortTag() {
	case stringTag:
		// YAML takes a number too large for a float64 for a string.
		if node.Style == 0 && isNumber {
			return number, nil
		}
		return e.text(node.Value, isTagged(node))
	case "!!timestamp", "!!merge":
		return node.Value, nil
	case "!!null":
		return nil, nil //nolint:nilnil // This represents null.
	case "!!bool":
		return strings.EqualFold(node.Value, "true"), nil
	case "!!int", "!!float":
		if !isNumber {
			return nil, errors.New("is not a JSON number; write decimal digits, or quote it to make it a string")
		}
		return number, nil
	default:
		return nil, tagError(node.ShortTag())
	}
}

// text converts a string. If the field is not a string in the contract, the value of a reference is JSON.
func (e *entryReader) text(text string, isTagged bool) (any, error) {
	value, err := e.expand(text, isTagged)
	field := e.schema.Properties[e.path[0]]
	if err != nil || !isReference(text) || len(e.path) > 1 || field == nil || field.Value.Type.Is(openapi3.TypeString) {
		return value, err
	}
	if err := contract.CheckJSON([]byte(value)); err != nil {
		return nil, fmt.Errorf("refers to %s, whose value must be JSON, because the field is not a string: %w",
			strings.Trim(text, "${}"), err)
	}
	return jsontext.Value(value), nil
}

// tagError says what to write instead of a tag. It repeats no tag, which may be a secret that lacks its quotes.
func tagError(tag string) error {
	switch tag {
	case "!Find", "!KeyOf":
		return errors.New("has a tag that providerd does not know; write the UUID itself")
	case "!Env", "!Secret", "!File", "!Context", "!vault":
		return errors.New("has a tag that providerd does not know; write ${NAME} for a variable or ${file:PATH} for a file")
	default:
		return errors.New("has a tag other than !!str; quote a value that begins with !, or write ${NAME} for a variable " +
			"or ${file:PATH} for a file")
	}
}
