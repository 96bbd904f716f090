package database

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"gorm.io/gorm"
)

const (
	// shownDrift is the maximum number of differences described.
	shownDrift = 5
	// maxObjectName is the maximum number of characters shown of a name.
	maxObjectName = 200
)

// Objects maps the name of each part of a schema, such as `index "events_event"`, to its definition.
type Objects map[string]string

// ReadObjects runs a query for the columns name and definition.
func ReadObjects(query *gorm.DB) (Objects, error) {
	var rows []struct{ Name, Definition string }
	if err := query.Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	objects := Objects{}
	for _, row := range rows {
		objects[row.Name] = row.Definition
	}
	return objects, nil
}

// Names returns the sorted names.
func (o Objects) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Drift describes the first few differences, by name, between o, the expected objects, and those found, such as
// `index "events_event" is missing`. Names that another program chose are made printable.
func (o Objects) Drift(found Objects) []string {
	var drift []string
	for name, definition := range o {
		switch actual, ok := found[name]; {
		case !ok:
			drift = append(drift, name+" is missing")
		case actual != definition:
			drift = append(drift, name+" was changed")
		}
	}
	for name := range found {
		if _, ok := o[name]; !ok {
			drift = append(drift, printable(name)+" was added")
		}
	}
	slices.Sort(drift)
	if len(drift) > shownDrift {
		drift = append(drift[:shownDrift], "and more")
	}
	return drift
}

func printable(name string) string {
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
