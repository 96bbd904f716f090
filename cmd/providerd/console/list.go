package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"example.com/providerd/cmd/providerd/escape"
	"example.com/providerd/cmd/providerd/yamltext"
	"example.com/providerd/store"
)

// The forms of output for programs, of which the log has the first.
const (
	FormatJSON = "json"
	FormatYAML = "yaml"
)

// List is how the elements of a list are shown.
type List[T any] struct {
	// Headings are those of a table, with commas between them.
	Headings string
	// Rows are those of a table, and value is what JSON and YAML have.
	Rows  func(element T) [][]string
	Value func(element T) any
}

// printer prints elements one after the other, so that any number of them fits into memory.
type printer interface {
	add(value any, rows [][]string) error
	// end prints what comes behind the last one. Where it is not called, nothing takes the part that was printed for the
	// whole, as far as the form allows.
	end() error
}

// Print prints a list. Elements that are damaged are told of and left out.
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
			err = to.add(l.Value(element), l.Rows(element))
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

// SkippedError is why a command fails that has left out so many damaged records; nil for none.
func SkippedError(damaged int) error {
	if damaged == 0 {
		return nil
	}
	return errors.New(Count(damaged, "damaged record is", "damaged records are") + " left out")
}

func newPrinter(out *Output, format string, headings string) printer {
	switch format {
	case FormatJSON:
		return &jsonPrinter{out: out, separator: "["}
	case FormatYAML:
		return &yamlPrinter{out: out}
	default:
		return tablePrinter{NewTable(out, strings.Split(headings, ",")...)}
	}
}

type tablePrinter struct{ table *table }

func (p tablePrinter) add(_ any, rows [][]string) error {
	for _, cells := range rows {
		p.table.Row(cells...)
	}
	return p.table.err
}

func (p tablePrinter) end() error { return p.table.Flush() }

// jsonPrinter prints one array, an element a line.
type jsonPrinter struct {
	out       *Output
	separator string
}

func (p *jsonPrinter) add(value any, _ [][]string) error {
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

// yamlPrinter prints one list.
type yamlPrinter struct {
	out   *Output
	begun bool
}

func (p *yamlPrinter) add(value any, _ [][]string) error {
	p.begun = true
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	return PrintYAML(p.out, text, yamltext.Element)
}

func (p *yamlPrinter) end() error {
	if p.begun {
		return nil
	}
	return p.out.Line("[]")
}

// PrintYAML prints JSON in a form of YAML.
func PrintYAML(out *Output, text []byte, form func([]byte, yamltext.Change) ([]byte, error)) error {
	rendered, err := form(text, yamltext.Same)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	_, err = out.Write(rendered)
	return err
}

// Limited hands on at most so many elements, 0 for all, and tells of the last one where there are more.
func Limit[T any](elements iter.Seq2[T, error], limit int64, more func(last T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		given := int64(0)
		var last T
		for element, err := range elements {
			if limit > 0 && given == limit {
				more(last)
				return
			}
			if !yield(element, err) {
				return
			}
			given++
			last = element
		}
	}
}

// Each hands on elements that are there already.
func Values[T any](elements ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, element := range elements {
			if !yield(element, nil) {
				return
			}
		}
	}
}
