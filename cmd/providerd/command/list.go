package command

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
	formatJSON = "json"
	formatYAML = "yaml"
)

// list is how the elements of a list are shown.
type list[T any] struct {
	// headings are those of a table, with commas between them.
	headings string
	// rows are those of a table, and value is what JSON and YAML have.
	rows  func(element T) [][]string
	value func(element T) any
}

// printer prints elements one after the other, so that any number of them fits into memory.
type printer interface {
	add(value any, rows [][]string) error
	// end prints what comes behind the last one. Where it is not called, nothing takes the part that was printed for the
	// whole, as far as the form allows.
	end() error
}

// print prints a list. Elements that are damaged are told of and left out.
func (l list[T]) print(out *output, say *messages, format string, elements iter.Seq2[T, error]) error {
	to := newPrinter(out, format, l.headings)
	damaged := 0
	for element, err := range elements {
		if errors.Is(err, store.ErrDamaged) {
			say.complain(err)
			damaged++
			continue
		}
		if err == nil {
			err = to.add(l.value(element), l.rows(element))
		}
		if err != nil {
			return err
		}
	}
	if err := to.end(); err != nil {
		return err
	}
	return damageError(damaged)
}

func damageError(damaged int) error {
	if damaged == 0 {
		return nil
	}
	return errors.New(count(damaged, "damaged record is", "damaged records are") + " left out")
}

func newPrinter(out *output, format string, headings string) printer {
	switch format {
	case formatJSON:
		return &jsonPrinter{out: out, separator: "["}
	case formatYAML:
		return &yamlPrinter{out: out}
	default:
		return tablePrinter{newTable(out, strings.Split(headings, ",")...)}
	}
}

type tablePrinter struct{ table *table }

func (p tablePrinter) add(_ any, rows [][]string) error {
	for _, cells := range rows {
		p.table.row(cells...)
	}
	return p.table.err
}

func (p tablePrinter) end() error { return p.table.flush() }

// jsonPrinter prints one array, an element a line.
type jsonPrinter struct {
	out       *output
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
		return p.out.line("[\n]")
	}
	return p.out.line("\n]")
}

// yamlPrinter prints one list.
type yamlPrinter struct {
	out   *output
	begun bool
}

func (p *yamlPrinter) add(value any, _ [][]string) error {
	p.begun = true
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	return printYAML(p.out, text, yamltext.Element)
}

func (p *yamlPrinter) end() error {
	if p.begun {
		return nil
	}
	return p.out.line("[]")
}

// printYAML prints JSON in a form of YAML.
func printYAML(out *output, text []byte, form func([]byte, yamltext.Change) ([]byte, error)) error {
	rendered, err := form(text, yamltext.Same)
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	_, err = out.Write(rendered)
	return err
}

// limited hands on at most so many elements, 0 for all, and tells of the last one where there are more.
func limited[T any](elements iter.Seq2[T, error], limit int64, more func(last T)) iter.Seq2[T, error] {
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

// each hands on elements that are there already.
func each[T any](elements ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, element := range elements {
			if !yield(element, nil) {
				return
			}
		}
	}
}
