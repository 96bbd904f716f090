package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// Entry is one provider of a manifest.
type Entry struct {
	Kind string `json:"kind"`
	// ID is unique in the manifest; "" if the entry has neither an id nor a name.
	ID string `json:"id,omitempty"`
	// Was is the id that the entry had before; "" if it had no other.
	Was string `json:"was,omitempty"`
	// Body is the body of the request: one JSON object.
	Body []byte `json:"-"`
	// places are the positions of the entry, its fields and their elements.
	places map[jsontext.Pointer]place
}

// place is the position of a value.
type place struct {
	Position
	// isBroken is true if a problem was reported for the value, which is then null in the body.
	isBroken bool
}

// At returns the position of a value in the body or, if it is unknown, of the innermost value that contains it.
func (e Entry) At(pointer string) Position { return e.place(jsontext.Pointer(pointer)).Position }

// IsBroken reports whether a problem was reported for a value of the body, or for one that contains it.
func (e Entry) IsBroken(pointer string) bool { return e.place(jsontext.Pointer(pointer)).isBroken }

// Has reports whether the entry has a field or, for /id, an id other than its name.
func (e Entry) Has(pointer string) bool {
	_, ok := e.places[jsontext.Pointer(pointer)]
	return ok
}

func (e Entry) place(pointer jsontext.Pointer) place {
	for {
		if at, ok := e.places[pointer]; ok || pointer == "" {
			return at
		}
		pointer = pointer.Parent()
	}
}

// FieldName returns how messages name the value that a JSON pointer leads to: a field of the provider by its name, and
// a value inside one by the pointer.
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

// readEntry reads an entry. It is kept unless it is not a mapping or is too large.
func (r *reader) readEntry(kind Kind, node *yaml.Node) {
	e := entryReader{
		reader: r, schema: kind.Schema, limit: r.used.bytes + maxEntryBytes,
		Entry: Entry{Kind: kind.Name, places: map[jsontext.Pointer]place{"": {Position: r.position(node)}}},
	}
	before := len(r.Problems)
	e.read(node)
	for i := range r.Problems[before:] {
		problem := &r.Problems[before+i]
		problem.Kind, problem.ID = e.Kind, e.ID
	}
	if e.Body != nil {
		r.Entries = append(r.Entries, e.Entry)
	}
}

func (e *entryReader) read(node *yaml.Node) {
	root := resolve(node)
	if root.Kind != yaml.MappingNode {
		e.report(node, "must be a mapping with the fields of a provider")
		return
	}
	members := map[string]*yaml.Node{}
	e.addMembers(members, root, 1)
	e.ID, e.Was = e.readID(members, idMember), e.readID(members, wasMember)
	fields := e.readMembers(members)
	if name, ok := fields["name"].(string); ok && e.ID == "" {
		e.ID = name
	}
	if excess := e.used.excess(); excess != "" {
		e.report(node, excess)
		return
	}
	body, err := json.Marshal(fields, json.Deterministic(true))
	switch {
	case err != nil:
		e.report(node, "cannot be written as JSON")
	case e.isFull(), len(body) > maxEntryBytes:
		e.report(node, fmt.Sprintf("is larger than %d MiB as JSON with its aliases expanded; no server accepts it",
			maxEntryBytes>>20))
	default:
		e.Body = body
	}
}

// isFull reports whether a limit was exceeded.
func (e *entryReader) isFull() bool { return e.used.bytes > e.limit || e.used.isOver() }

// readID removes id or was, which are not fields of the provider, and returns its value.
func (e *entryReader) readID(members map[string]*yaml.Node, name string) string {
	node, ok := members[name]
	delete(members, name)
	if !ok {
		return ""
	}
	node = resolve(node)
	e.places[jsontext.Pointer("/"+name)] = place{Position: e.position(node)}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != stringTag {
		e.report(node, name+" must be a string; quote a number")
		return ""
	}
	id, err := e.expand(node.Value)
	if err == nil && strings.TrimSpace(id) == "" {
		err = errors.New("must not be blank")
	}
	if err != nil {
		e.report(node, name+" "+err.Error())
		return ""
	}
	return id
}
