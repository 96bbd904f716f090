// Package manifest reads and writes YAML files that list providers, and reports problems with their positions. It knows
// the fields of a provider only from the schema of the contract.
//
// Start with Read; entry.go converts one entry to the body of a request.
package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// Kind is a kind of provider that a manifest can list.
type Kind struct {
	// Name is the key in the file whose value lists the providers of this kind.
	Name string
	// Schema is the schema of a request that creates one.
	Schema *openapi3.Schema
}

// File is one of the files of a manifest.
type File struct {
	// Name is the name in messages.
	Name string
	// Dir is the directory that ${file:PATH} is relative to.
	Dir  string
	Text []byte
}

// Position is a line and a column, in characters, of a file. Both count from 1; if Line is 0, only the file is known.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Compare orders positions by file name, line and column.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.File, other.File), cmp.Compare(p.Line, other.Line), cmp.Compare(p.Column, other.Column))
}

// String returns FILE:LINE:COLUMN, which editors and terminals turn into a link.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, max(p.Column, 1))
}

// Problem is a reason why a manifest cannot be used. It contains no values, because they may be secrets.
type Problem struct {
	Position
	// Kind and ID identify the entry; "" if the problem is not in one, or it has none.
	Kind, ID string
	Detail   string
}

// Manifest holds the entries of files.
type Manifest struct {
	Entries []Entry
	// Problems are ordered by position. If there are any, do not use the entries.
	Problems []Problem
	// OutsideFiles are the sorted paths of referenced files that are not in the directory of the file that refers to them.
	OutsideFiles []string
}

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

// Read reads all documents of all files. In values of entries, it replaces references by their values, and $${ by ${.
func Read(files []File, kinds []Kind, values Values) Manifest {
	r := &reader{kinds: kinds, values: values, outside: map[string]bool{}}
	for _, r.file = range files {
		if r.used.isOver() {
			break
		}
		r.readFile()
	}
	r.findRepeatedIDs()
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(a.Compare(b.Position), cmp.Compare(a.Detail, b.Detail))
	})
	// A value with aliases has one problem.
	r.Problems = slices.Compact(r.Problems)
	r.OutsideFiles = slices.Sorted(maps.Keys(r.outside))
	return r.Manifest
}

type reader struct {
	Manifest
	kinds   []Kind
	values  Values
	used    usage
	lists   int
	file    File
	outside map[string]bool
}

func (r *reader) readFile() {
	if line, detail := r.used.countNodes(r.file.Text); detail != "" {
		r.report(&yaml.Node{Line: line}, detail)
		return
	}
	before := len(r.Problems)
	if err := r.readDocuments(); err != nil {
		r.reportSyntax(err)
	}
	if len(r.Problems) > before {
		r.reportNoBreakSpaces()
	}
}

func (r *reader) readDocuments() error {
	// The parser refuses the version 1.2, although it reads what that says.
	text := regexp.MustCompile(`(?m)^%YAML 1\.2`).ReplaceAll(r.file.Text, []byte("%YAML 1.1"))
	if json.Valid(text) {
		text = joinSurrogates(text)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read YAML: %w", err)
	}
	problems, lists, cause := len(r.Problems), r.lists, "is empty"
	for !r.used.isOver() {
		var document yaml.Node
		err := loader.Load(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read YAML: %w", err)
		}
		if root := resolve(document.Content[0]); !isNull(root) {
			cause = "has no list of providers"
			r.readDocument(root)
		}
	}
	if len(r.Problems) == problems && r.lists == lists {
		r.reportEmpty(&yaml.Node{}, cause, r.kinds[0])
	}
	return nil
}

// reportEmpty reports a file or kind that may list no providers by mistake: --prune would delete their records.
func (r *reader) reportEmpty(node *yaml.Node, cause string, kind Kind) {
	r.report(node, cause+"; write "+kind.Name+": [] if it should list no providers")
}

// readDocument reads a mapping from kinds to lists of entries.
func (r *reader) readDocument(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		r.report(root, "must be a mapping from "+r.kindNames()+" to lists of providers")
		return
	}
	if other := otherFormat(root); other != "" {
		r.report(root, other)
		return
	}
	seen := map[string]bool{}
	for pair := range slices.Chunk(root.Content, 2) {
		key, value := pair[0], pair[1]
		at := slices.IndexFunc(r.kinds, func(kind Kind) bool { return kind.Name == key.Value })
		switch {
		case strings.HasPrefix(key.Value, "x-"), key.Value == "$schema":
			// The former define anchors.
		case at < 0:
			detail := key.Value + " is not a kind of provider; the kinds are " + r.kindNames()
			if strings.Contains(key.Value, "workspace") {
				detail += ", which is for Google Workspace"
			}
			r.report(key, detail)
		case seen[key.Value]:
			r.report(key, key.Value+" occurs twice")
		default:
			r.readList(r.kinds[at], key, resolve(value))
		}
		seen[key.Value] = true
	}
}

func (r *reader) kindNames() string {
	names := make([]string, len(r.kinds))
	for i, kind := range r.kinds {
		names[i] = kind.Name
	}
	return strings.Join(names, " and ")
}

func (r *reader) readList(kind Kind, key, list *yaml.Node) {
	if isNull(list) {
		r.reportEmpty(key, kind.Name+" is empty", kind)
		return
	}
	if list.Kind != yaml.SequenceNode {
		r.report(list, kind.Name+" must be a list of providers, each beginning with a hyphen")
		return
	}
	r.lists++
	for _, node := range list.Content {
		if r.used.isOver() {
			return
		}
		r.readEntry(kind, node)
	}
}

func (r *reader) report(node *yaml.Node, detail string) {
	r.used.problems++
	r.used.bytes += len(detail)
	r.Problems = append(r.Problems, Problem{Position: r.position(node), Detail: detail})
}

func (r *reader) position(node *yaml.Node) Position {
	return Position{r.file.Name, node.Line, node.Column}
}

// findRepeatedIDs reports entries whose id an earlier one has, and former ids that another entry has, or had.
func (r *reader) findRepeatedIDs() {
	places := map[string]Position{}
	for _, isFormer := range []bool{false, true} {
		for _, entry := range r.Entries {
			id, detail := entry.ID, "has the same id as the entry in %s; change one of them"
			if isFormer {
				id, detail = entry.Was, "`was` is already the id or a former id of the entry in %s; write "+
					"the former id of this entry"
			}
			place := entry.At("")
			if first, ok := places[id]; ok {
				detail = fmt.Sprintf(detail, first)
				r.Problems = append(r.Problems, Problem{Position: place, Kind: entry.Kind, ID: entry.ID, Detail: detail})
			} else if id != "" {
				places[id] = place
			}
		}
	}
}

func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}
