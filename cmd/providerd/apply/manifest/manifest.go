// Package manifest reads and writes YAML files that list providers, and reports problems with their positions. It knows
// the fields of a provider only from the schema of the contract.
//
// Start with Read; body.go converts one entry to the body of a request.
package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
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

// Position is a position in a file. Lines and columns count from 1, columns in characters. If Line is 0, only the
// file is known.
type Position struct {
	File   string
	Line   int
	Column int
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

// RelativeTo describes the position for a message about another one: without the file if that is the same.
func (p Position) RelativeTo(other Position) string {
	if p.File == other.File {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
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

// Read reads all documents of all files. In the values of entries, it replaces references by what values returns, and
// $${ by ${.
func Read(files []File, kinds []Kind, values Values) Manifest {
	r := &reader{kinds: kinds, values: values, outside: map[string]bool{}}
	for _, file := range files {
		r.file = file
		if r.used.isOver() {
			break
		}
		if line := r.used.countNodes(file.Text); line > 0 {
			r.report(&yaml.Node{Line: line}, r.used.excess())
			break
		}
		before := len(r.problems)
		if err := r.readDocuments(file.Text); err != nil {
			r.problems = append(r.problems, r.syntaxProblem(file.Text, err))
		}
		if len(r.problems) > before {
			r.findNoBreakSpaces(file.Text)
		}
	}
	r.findRepeatedIDs()
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Compare(b.Position) })
	return Manifest{
		Entries: r.entries, Problems: r.problems, OutsideFiles: slices.Sorted(maps.Keys(r.outside)),
	}
}

// reader collects the entries and problems of files.
type reader struct {
	kinds  []Kind
	values Values
	used   usage
	// file is the current file.
	file     File
	outside  map[string]bool
	entries  []Entry
	problems []Problem
}

func (r *reader) readDocuments(text []byte) error {
	// The parser refuses the version 1.2, although it reads what that says.
	text = regexp.MustCompile(`(?m)^%YAML 1\.2`).ReplaceAll(text, []byte("%YAML 1.1"))
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read YAML: %w", err)
	}
	isEmpty := true
	for !r.used.isOver() {
		var document yaml.Node
		err := loader.Load(&document)
		switch {
		case errors.Is(err, io.EOF) && isEmpty:
			r.problems = append(r.problems, Problem{
				Position: Position{File: r.file.Name},
				Detail:   "is empty; write " + r.kinds[0].Name + ": [] if it should list no providers",
			})
			return nil
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read YAML: %w", err)
		}
		root := resolve(document.Content[0])
		if !isNull(root) {
			isEmpty = false
			r.readDocument(root)
		}
	}
	return nil
}

// readDocument reads a mapping from kinds to lists of entries.
func (r *reader) readDocument(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		r.report(root, "must be a mapping from "+r.kindNames()+" to lists of providers")
		return
	}
	if other := otherFormat(root); other != "" {
		r.report(root, other+"; write a file such as oauth2: [{name: Wiki, authorization_flow: "+
			"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01, redirect_uris: [https://wiki.example.com/callback]}]")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content) && !r.used.isOver(); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := slices.IndexFunc(r.kinds, func(kind Kind) bool { return kind.Name == key.Value })
		switch {
		case strings.HasPrefix(key.Value, "x-"), key.Value == "$schema":
			// The former define anchors.
		case at < 0:
			r.report(key, key.Value+" is not a kind of provider; the kinds are "+r.kindNames())
		case seen[key.Value]:
			r.report(key, key.Value+" occurs twice")
		default:
			r.readList(r.kinds[at], value)
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

func (r *reader) readList(kind Kind, list *yaml.Node) {
	list = resolve(list)
	if isNull(list) {
		return
	}
	if list.Kind != yaml.SequenceNode {
		r.report(list, kind.Name+" must be a list of providers, each beginning with a hyphen")
		return
	}
	for _, node := range list.Content {
		if r.used.isOver() {
			return
		}
		r.readEntry(kind, node)
	}
}

func (r *reader) readEntry(kind Kind, node *yaml.Node) {
	body := bodyReader{
		schema: kind.Schema, values: r.values, file: r.file, used: &r.used, outside: r.outside, known: map[Problem]bool{},
	}
	entry := body.read(node)
	entry.Kind = kind.Name
	for _, problem := range body.problems {
		problem.Kind, problem.ID = entry.Kind, entry.ID
		r.problems = append(r.problems, problem)
	}
	if entry.Body != nil {
		r.entries = append(r.entries, entry)
	}
}

func (r *reader) report(node *yaml.Node, detail string) {
	r.used.problems++
	r.problems = append(r.problems, Problem{Position: positionIn(r.file.Name, node), Detail: detail})
}

// findRepeatedIDs reports entries whose id an earlier one has, and former ids that an entry still has.
func (r *reader) findRepeatedIDs() {
	places := map[string]Position{}
	for _, entry := range r.entries {
		if entry.ID == "" {
			continue
		}
		place := entry.At("")
		if first, ok := places[entry.ID]; ok {
			r.problems = append(r.problems, Problem{
				Position: place, Kind: entry.Kind, ID: entry.ID,
				Detail: fmt.Sprintf("has the same id as the entry in %s; change one of them", first.RelativeTo(place)),
			})
			continue
		}
		places[entry.ID] = place
	}
	for _, entry := range r.entries {
		if entry.Was == "" {
			continue
		}
		place := entry.At("")
		if other, ok := places[entry.Was]; ok {
			r.problems = append(r.problems, Problem{
				Position: place, Kind: entry.Kind, ID: entry.ID,
				Detail: fmt.Sprintf("`was` is the id, or the former id, of the entry in %s", other.RelativeTo(place)),
			})
		}
		places[entry.Was] = place
	}
}

func positionIn(file string, node *yaml.Node) Position {
	return Position{File: file, Line: node.Line, Column: node.Column}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }
