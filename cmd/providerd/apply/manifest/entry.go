package manifest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

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
	// Most are of variables that another program replaced. An exported record without a secret has the tag.
	isEmpty := fields[clientSecret] == "" && fields["client_type"] != "public"
	if node := members[clientSecret]; isEmpty && !isTagged(resolve(node)) {
		e.report(node, "`client_secret` is empty; write it, omit it to generate one, or write !!str before it to store none")
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
	id, err := e.expand(node.Value, isTagged(node))
	if err == nil && strings.TrimSpace(id) == "" {
		err = errors.New("must not be blank")
	}
	if err != nil {
		e.report(node, name+" "+err.Error())
		return ""
	}
	return id
}
