// Package manifest reads the YAML files that list providers to create, says at which place what is wrong with them, and
// writes such files. It knows the shape of a provider by its schema alone, and sends nothing.
//
// Start with Read; body.go turns one entry into the body of a request.
package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"
)

// Kind is a kind of provider that a manifest can list.
type Kind struct {
	// Name is the member of the manifest that lists the providers of this kind.
	Name string
	// Schema is that of a request that creates one.
	Schema *openapi3.Schema
}

// File is one of those that a manifest is written in.
type File struct {
	// Name is what people are told of it.
	Name string
	Text []byte
}

// Position is a place in the manifest. Both numbers begin at 1, and columns count characters; where Line is 0, only the
// file is known.
type Position struct {
	File   string
	Line   int
	Column int
}

// Compare orders positions as they follow each other in a file, and the files by their names.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.File, other.File), cmp.Compare(p.Line, other.Line), cmp.Compare(p.Column, other.Column))
}

// String returns the position in the form that editors and terminals make a link of.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, max(p.Column, 1))
}

// RelativeTo says where the position is to one who looks at another one.
func (p Position) RelativeTo(other Position) string {
	if p.File == other.File {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Problem is one reason why a manifest cannot be used. It repeats no value, since that may be a secret.
type Problem struct {
	Position
	// Kind and ID are those of the entry; empty where the fault is not in one that has them.
	Kind, ID string
	Detail   string
}

// Manifest is what some files list together.
type Manifest struct {
	Entries []Entry
	// Faults are in the order of their positions. Where there are any, the entries are not to be used.
	Problems []Problem
}

// Read reads all documents of all files. References such as ${NAME} in their values are replaced by the variables that
// lookUp finds; $${ stands for ${ itself.
func Read(files []File, kinds []Kind, lookUp LookUp) Manifest {
	r := &reader{kinds: kinds, lookUp: lookUp}
	for _, file := range files {
		r.file = file.Name
		if r.used.isOver() {
			break
		}
		if line := r.used.countNodes(file.Text); line > 0 {
			r.fault(&yaml.Node{Line: line}, r.used.excess())
			break
		}
		if err := r.readDocuments(file.Text); err != nil {
			r.faults = append(r.faults, r.syntaxFault(file.Text, err))
		}
	}
	r.findTwins()
	slices.SortStableFunc(r.faults, func(a, b Problem) int { return a.Compare(b.Position) })
	return Manifest{Entries: r.entries, Problems: r.faults}
}

// reader collects what a manifest has.
type reader struct {
	kinds  []Kind
	lookUp LookUp
	used   usage
	// file is the name of the one that is read.
	file    string
	entries []Entry
	faults  []Problem
}

func (r *reader) readDocuments(text []byte) error {
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
			r.faults = append(r.faults, Problem{
				Position: Position{File: r.file}, Detail: "is empty; write " + r.kinds[0].Name + ": [] where no provider is meant",
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

// syntaxFault says where the text stops being YAML.
func (r *reader) syntaxFault(text []byte, err error) Problem {
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return Problem{Position: Position{File: r.file}, Detail: "cannot be read as YAML"}
	}
	detail := "is not YAML: " + wrong.Message
	if strings.HasPrefix(wrong.Message, "unknown anchor") {
		// The library's sentence has the name of the anchor, which is a value where someone forgot to quote it.
		detail = "refers to an anchor that is not set; quote a value that begins with *"
	}
	at := Position{File: r.file, Line: wrong.Mark.Line, Column: wrong.Mark.Column}
	if at.Line == 0 {
		// Of a character that YAML cannot have, the library knows the offset alone.
		before := text[:min(wrong.Mark.Index, len(text))]
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		at = Position{File: r.file, Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(line)}
	}
	if isTab(text, at) {
		detail = "is not YAML: there is a tab; indent with spaces"
	}
	return Problem{Position: at, Detail: detail}
}

// isTab tells whether there is a tab at a position in the text.
func isTab(text []byte, at Position) bool {
	line := 0
	for part := range bytes.Lines(text) {
		if line++; line == at.Line {
			characters := []rune(string(part))
			return at.Column <= len(characters) && characters[max(at.Column, 1)-1] == '\t'
		}
	}
	return false
}

// readDocument reads one mapping from kinds to lists of entries.
func (r *reader) readDocument(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		r.fault(root, "must be a mapping from "+r.kindNames()+" to lists of providers")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content) && !r.used.isOver(); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := slices.IndexFunc(r.kinds, func(kind Kind) bool { return kind.Name == key.Value })
		switch {
		case strings.HasPrefix(key.Value, "x-"):
			// A place for what anchors are set on.
		case at < 0:
			r.fault(key, key.Value+" is not a kind of provider; the kinds are "+r.kindNames())
		case seen[key.Value]:
			r.fault(key, key.Value+" occurs twice")
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
		r.fault(list, kind.Name+" must be a list of providers, each begun with a hyphen")
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
	body := bodyReader{schema: kind.Schema, lookUp: r.lookUp, file: r.file, used: &r.used, known: map[Problem]bool{}}
	entry := body.read(node)
	entry.Kind = kind.Name
	for _, fault := range body.faults {
		fault.Kind, fault.ID = entry.Kind, entry.ID
		r.faults = append(r.faults, fault)
	}
	if entry.Body != nil {
		r.entries = append(r.entries, entry)
	}
}

func (r *reader) fault(node *yaml.Node, detail string) {
	r.used.faults++
	r.faults = append(r.faults, Problem{Position: positionIn(r.file, node), Detail: detail})
}

// findTwins finds the ids that two entries share: only one of the two could be told from the other by its id.
func (r *reader) findTwins() {
	places := map[string]Position{}
	for _, entry := range r.entries {
		if entry.ID == "" {
			continue
		}
		place := entry.At("")
		if first, ok := places[entry.ID]; ok {
			r.faults = append(r.faults, Problem{
				Position: place, Kind: entry.Kind, ID: entry.ID,
				Detail: fmt.Sprintf("has the id of the entry in %s; give one of them another id", first.RelativeTo(place)),
			})
			continue
		}
		places[entry.ID] = place
	}
}

func positionIn(file string, node *yaml.Node) Position {
	return Position{File: file, Line: node.Line, Column: node.Column}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }
