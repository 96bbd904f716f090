package database

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

const (
	// shownDrift is how many differences are described.
	shownDrift = 5
	// maxObjectName is how many characters of a name are shown.
	maxObjectName = 200
)

// Objects are the parts of a schema, such as `index "key_events_at"`, each with its definition.
type Objects map[string]string

// Names returns the names in their order.
func (o Objects) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Drift describes how the objects that were found differ from those that are expected: the first few by name, in words
// such as `index "key_events_at" is missing`. Another program may have given them any name, which is made legible.
func (o Objects) Drift(found Objects) []string {
	var drift []string
	for name, definition := range o {
		switch actual, isThere := found[name]; {
		case !isThere:
			drift = append(drift, name+" is missing")
		case actual != definition:
			drift = append(drift, name+" was changed")
		}
	}
	for name := range found {
		if _, isExpected := o[name]; !isExpected {
			drift = append(drift, legible(name)+" was added")
		}
	}
	slices.Sort(drift)
	if len(drift) > shownDrift {
		drift = append(drift[:shownDrift], "and more")
	}
	return drift
}

func legible(name string) string {
	if runes := []rune(name); len(runes) > maxObjectName {
		name = string(runes[:maxObjectName]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, name)
}
