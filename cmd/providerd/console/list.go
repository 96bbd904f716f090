package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"example.com/providerd/store"
)

// FormatJSON is the format of output for programs.
const FormatJSON = "json"

// List describes how elements are printed.
type List[T any] struct {
	// Headings are the headings of a table, separated by commas.
	Headings string
	// Rows returns the rows of an element in a table, and Value returns its value in JSON; nil for the element itself.
	Rows  func(element T) [][]string
	Value func(element T) any
	// Color returns the color of the first cell of a row; nil for none.
	Color func(element T) Color
	// None says why there may be no elements; "" if nothing does.
	None string
}

// Print prints a list, element by element, so that memory does not limit their number. It reports damaged elements and
// omits them; the error then counts them. If another error ends the list, readers can tell that JSON is incomplete.
func (l List[T]) Print(out *Output, messages *Messages, format string, elements iter.Seq2[T, error]) error {
	table, separator, damaged := NewTable(out, strings.Split(l.Headings, ",")...), "[", 0
	for element, err := range elements {
		switch {
		case errors.Is(err, store.ErrDamaged):
			messages.Error(err)
			damaged++
			continue
		case err == nil && format == FormatJSON:
			err = l.printJSON(out, separator, element)
			separator = ","
		case err == nil:
			l.addTo(table, element)
			separator = ","
			// It returns the error of an earlier write.
			_, err = out.Write(nil)
		}
		if err != nil {
			return err
		}
	}
	if format == FormatJSON {
		err := cmp.Or(out.Line(strings.TrimSuffix(separator, ",")+"\n]"), SkippedError(damaged))
		return err //nolint:wrapcheck // Both are of this package.
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if separator == "[" {
		messages.Note("none%s", l.None)
	}
	return SkippedError(damaged)
}

func (l List[T]) printJSON(out *Output, separator string, element T) error {
	value := any(element)
	if l.Value != nil {
		value = l.Value(element)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	_, err = out.Write(append([]byte(separator+"\n"), EscapeJSON(text)...))
	return err
}

func (l List[T]) addTo(table *table, element T) {
	color := NoColor
	if l.Color != nil {
		color = l.Color(element)
	}
	for _, cells := range l.Rows(element) {
		table.ColoredRow(color, cells...)
	}
}

// TokenNames returns the names of the tokens that are not damaged.
func TokenNames(ctx context.Context, database *store.Store) (names []string, err error) {
	for token, err := range database.Tokens.List(ctx) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
		if err == nil && !slices.Contains(names, token.Name) {
			names = append(names, token.Name)
		}
	}
	return names, nil
}

// SkippedError returns the error of a command that omitted damaged records, or nil if there are none.
func SkippedError(damaged int) error {
	if damaged == 0 {
		return nil
	}
	return errors.New(Count(damaged, "damaged record was", "damaged records were") + " omitted; " + remedyOfDamage)
}

// Limit yields at most limit elements; 0 means all. If there are more, it calls more with the last one yielded.
func Limit[T any](elements iter.Seq2[T, error], limit int64, more func(last T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		yielded := int64(0)
		var last T
		for element, err := range elements {
			if limit > 0 && yielded == limit {
				more(last)
				return
			}
			if yielded, last = yielded+1, element; !yield(element, err) {
				return
			}
		}
	}
}

// Values yields elements without errors.
func Values[T any](elements ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, element := range elements {
			if !yield(element, nil) {
				return
			}
		}
	}
}
