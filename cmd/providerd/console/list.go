package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"example.com/providerd/cmd/providerd/escape"
	"example.com/providerd/store"
)

// FormatJSON is the format of output for programs.
const FormatJSON = "json"

// List describes how elements are printed.
type List[T any] struct {
	// Headings are the headings of a table, separated by commas.
	Headings string
	// Rows returns the rows of an element in a table, and Value returns its value in JSON.
	Rows  func(element T) [][]string
	Value func(element T) any
	// Color returns the color of the first cell of a row; nil for none.
	Color func(element T) Color
}

// printer prints elements one by one, so that memory does not limit their number.
type printer interface {
	add(value any, color Color, rows [][]string) error
	// end prints what follows the last element. If it is not called, readers can tell that the output is incomplete, as
	// far as the format allows.
	end() error
}

// Print prints a list. It reports damaged elements and omits them; the error then counts them.
func (l List[T]) Print(out *Output, messages *Messages, format string, elements iter.Seq2[T, error]) error {
	to := newPrinter(out, format, l.Headings)
	damaged := 0
	for element, err := range elements {
		if errors.Is(err, store.ErrDamaged) {
			messages.Error(err)
			damaged++
			continue
		}
		if err == nil {
			color := NoColor
			if l.Color != nil {
				color = l.Color(element)
			}
			err = to.add(l.Value(element), color, l.Rows(element))
		}
		if err != nil {
			return err
		}
	}
	if err := to.end(); err != nil {
		return err
	}
	return SkippedError(damaged)
}

// SkippedError returns the error of a command that omitted damaged records, or nil if there are none.
func SkippedError(damaged int) error {
	if damaged == 0 {
		return nil
	}
	return errors.New(Count(damaged, "damaged record was", "damaged records were") + " omitted")
}

func newPrinter(out *Output, format string, headings string) printer {
	if format == FormatJSON {
		return &jsonPrinter{out: out, separator: "["}
	}
	return tablePrinter{NewTable(out, strings.Split(headings, ",")...)}
}

type tablePrinter struct{ table *table }

func (p tablePrinter) add(_ any, color Color, rows [][]string) error {
	for _, cells := range rows {
		p.table.ColoredRow(color, cells...)
	}
	return p.table.err
}

func (p tablePrinter) end() error { return p.table.Flush() }

// jsonPrinter prints one array, with one element per line.
type jsonPrinter struct {
	out       *Output
	separator string
}

func (p *jsonPrinter) add(value any, _ Color, _ [][]string) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	_, err = p.out.Write(append([]byte(p.separator+"\n"), escape.JSON(text)...))
	p.separator = ","
	return err
}

func (p *jsonPrinter) end() error {
	if p.separator == "[" {
		return p.out.Line("[\n]")
	}
	return p.out.Line("\n]")
}

// Limit yields at most limit elements, or all if limit is 0. If there are more, it calls more with the last one
// yielded.
func Limit[T any](elements iter.Seq2[T, error], limit int64, more func(last T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		yielded := int64(0)
		var last T
		for element, err := range elements {
			if limit > 0 && yielded == limit {
				more(last)
				return
			}
			if !yield(element, err) {
				return
			}
			yielded++
			last = element
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
