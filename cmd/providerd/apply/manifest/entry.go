package manifest

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Entry is one provider of a manifest.
type Entry struct {
	Kind string
	// ID is unique in the manifest; "" if the entry has neither an id nor a name.
	ID string
	// Was is the id that the entry had before; "" if it had no other.
	Was string
	// Body is the body of the request: one JSON object.
	Body []byte
	file string
	root place
}

// At returns the position of a value in the body or, if it is missing, of the innermost value that contains it.
func (e Entry) At(pointer string) Position {
	at := e.root
	e.walk(pointer, func(value place) { at = value })
	return Position{File: e.file, Line: at.line, Column: at.column}
}

// IsBroken reports whether a problem was reported for a value of the body, which is then null.
func (e Entry) IsBroken(pointer string) bool {
	isBroken := false
	e.walk(pointer, func(value place) { isBroken = isBroken || value.isBroken })
	return isBroken
}

// FieldName returns how messages name the value that a JSON pointer leads to: a field of the provider by its name, and
// a value inside one by the pointer.
func FieldName(pointer string) string {
	if name := jsontext.Pointer(pointer).LastToken(); "/"+name == pointer {
		return "`" + name + "`"
	}
	return "`" + pointer + "`"
}

// walk visits the values along a JSON pointer, as far as they exist.
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

// place is the position of a value and of the values in it.
type place struct {
	// name is the name of a member; "" for an element of a list.
	name         string
	line, column int
	// isBroken is true if a problem was reported for the value. The body then contains null.
	isBroken bool
	inner    []place
}
