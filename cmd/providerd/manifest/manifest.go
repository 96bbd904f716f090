// Package manifest reads the YAML files that list providers to create.
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
	"github.com/go-json-experiment/json/jsontext"
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

// SeenFrom says where the position is to one who looks at another one.
func (p Position) SeenFrom(other Position) string {
	if p.File == other.File {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Entry is one provider of a manifest.
type Entry struct {
	Kind string
	// ID is unique in the manifest; empty where the entry has neither an id nor a name.
	ID string
	// Body is the request that creates the provider: one JSON object.
	Body []byte
	// places has the position of each value, by its JSON pointer in Body.
	places map[jsontext.Pointer]Position
	// broken has the JSON pointers of values that could not be read.
	broken []jsontext.Pointer
}

// At returns the position of a value in the body, or, where it is missing, of what it is missing in.
func (e Entry) At(pointer string) Position {
	for at := jsontext.Pointer(pointer); ; at = at.Parent() {
		if place, ok := e.places[at]; ok || at == "" {
			return place
		}
	}
}

// IsBroken tells whether a fault of the manifest is reported for this value of the body, which then stands for nothing.
func (e Entry) IsBroken(pointer string) bool {
	return slices.ContainsFunc(e.broken, func(at jsontext.Pointer) bool { return at.Contains(jsontext.Pointer(pointer)) })
}

// Fault is one reason why a manifest cannot be used. It repeats no value, since that may be a secret.
type Fault struct {
	Position
	// Kind and ID are those of the entry; empty where the fault is not in one that has them.
	Kind, ID string
	Detail   string
}

// Manifest is what some files list together.
type Manifest struct {
	Entries []Entry
	// Faults are in the order of their positions. Where there are any, the entries are not to be used.
	Faults []Fault
}

// Read reads all documents of all files. References such as ${NAME} in their values are replaced by the variables that
// lookUp finds; $${ stands for ${ itself.
func Read(files []File, kinds []Kind, lookUp LookUp) Manifest {
	r := &reader{kinds: kinds, lookUp: lookUp}
	for _, file := range files {
		r.file, r.maxSteps = file.Name, max(leastMaxSteps, 2*len(file.Text))
		if err := r.readDocuments(file.Text); err != nil {
			r.faults = append(r.faults, r.syntaxFault(file.Text, err))
		}
	}
	r.findTwins()
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return a.Compare(b.Position) })
	return Manifest{Entries: r.entries, Faults: r.faults}
}

// leastMaxSteps is how many values an entry of a short file may have. No file without aliases has as many as twice its
// length.
const leastMaxSteps = 100_000

// reader collects what a manifest has.
type reader struct {
	kinds  []Kind
	lookUp LookUp
	// file is the name of the one that is read, and maxSteps how many values an entry of it may have.
	file     string
	maxSteps int
	entries  []Entry
	faults   []Fault
}

func (r *reader) readDocuments(text []byte) error {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read YAML: %w", err)
	}
	isEmpty := true
	for {
		var document yaml.Node
		err := loader.Load(&document)
		switch {
		case errors.Is(err, io.EOF) && isEmpty:
			r.faults = append(r.faults, Fault{
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
}

// syntaxFault says where the text stops being YAML.
func (r *reader) syntaxFault(text []byte, err error) Fault {
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return Fault{Position: Position{File: r.file}, Detail: "cannot be read as YAML"}
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
	return Fault{Position: at, Detail: detail}
}

// readDocument reads one mapping from kinds to lists of entries.
func (r *reader) readDocument(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		r.fault(root, "must be a mapping from "+r.kindNames()+" to lists of providers")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
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
		r.readEntry(kind, node)
	}
}

func (r *reader) readEntry(kind Kind, node *yaml.Node) {
	body := newBodyReader(kind.Schema, r.file, r.maxSteps, r.lookUp)
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
	r.faults = append(r.faults, Fault{Position: positionIn(r.file, node), Detail: detail})
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
			r.faults = append(r.faults, Fault{
				Position: place, Kind: entry.Kind, ID: entry.ID,
				Detail: fmt.Sprintf("has the id of the entry in %s; give one of them another id", first.SeenFrom(place)),
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
