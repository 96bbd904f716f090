package manifest

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Entry is one provider of a manifest.
type Entry struct {
	Kind string
	// ID is unique in the manifest; empty where the entry has neither an id nor a name.
	ID string
	// Body is the request that creates the provider: one JSON object.
	Body []byte
	file string
	root place
}

// At returns the position of a value in the body, or, where it is missing, of what it is missing in.
func (e Entry) At(pointer string) Position {
	at := e.root
	e.walk(pointer, func(value place) { at = value })
	return Position{File: e.file, Line: at.line, Column: at.column}
}

// IsBroken tells whether a fault of the manifest is reported for this value of the body, which then stands for nothing.
func (e Entry) IsBroken(pointer string) bool {
	isBroken := false
	e.walk(pointer, func(value place) { isBroken = isBroken || value.isBroken })
	return isBroken
}

// walk visits the values on the way to the one that a JSON pointer leads to, as far as they are there.
func (e Entry) walk(pointer string, visit func(value place)) {
	inner := e.root.inner
	for token := range jsontext.Pointer(pointer).Tokens() {
		at := slices.IndexFunc(inner, func(value place) bool { return value.name == token })
		if number, err := strconv.ParseUint(token, 10, 31); err == nil && at < 0 {
			at = int(number)
		}
		if at < 0 || at >= len(inner) {
			return
		}
		visit(inner[at])
		inner = inner[at].inner
	}
}

// place is where a value is, and where those are that it holds.
type place struct {
	// name is that of a member; empty for an element of a list.
	name         string
	line, column int
	// isBroken tells whether a fault is reported for the value, in whose stead the body has null.
	isBroken bool
	inner    []place
}
