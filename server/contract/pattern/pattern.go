// Package pattern matches strings against regular expressions by deterministic automata, because regexp would take two
// thirds of the time in which a body is validated. An automaton is a table of at most 16 KiB, inspects each character
// once and allocates nothing. Strings with characters other than ASCII are left to regexp, and so are expressions that
// have word boundaries or anchors of lines or would need a larger table.
//
// Start with Compiler.
package pattern

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// Compiler returns a function that compiles each expression once. Its matchers have the verdicts of regexp.
func Compiler() openapi3.RegexCompilerFunc {
	known := map[string]openapi3.RegexMatcher{}
	return func(expression string) (openapi3.RegexMatcher, error) {
		if known[expression] == nil {
			compiled, err := regexp.Compile(expression)
			if err != nil {
				return nil, err //nolint:wrapcheck // The caller adds what it is.
			}
			known[expression] = build(compiled)
		}
		return known[expression], nil
	}
}

const maxEntries = 8 << 10

// automaton is a deterministic automaton. A state is the index of a row of its table.
type automaton struct {
	*regexp.Regexp

	// columns holds the column of each character, which characters share that the expression does not distinguish.
	columns [utf8.RuneSelf]uint16
	// table has the next state for each column except the first, 0 if a string may end here. State 0 is never left.
	table []uint16
	start uint16
}

// MatchString reports whether a string contains a match.
func (a *automaton) MatchString(text string) bool {
	state := a.start
	for at := range len(text) {
		if text[at] >= utf8.RuneSelf {
			return a.Regexp.MatchString(text)
		}
		state = a.table[state+a.columns[text[at]]]
	}
	return a.table[state] == 0
}

// builder builds an automaton from the program of an expression. A state is the set of instructions that the program
// may have reached, with a byte for each, which is 1 if the set has it.
type builder struct {
	automaton

	program *syntax.Prog
	// characters holds a character of each column except the first.
	characters []rune
	// states holds the states in the order of their rows, rows their rows, and examples a string that leads to each.
	states, examples []string
	rows             map[string]uint16
	// width is the number of columns, and last the last row.
	width, last uint16
	// set is the state that is being built.
	set []byte
}

// build returns the automaton of an expression; the expression if it has none.
func build(expression *regexp.Regexp) openapi3.RegexMatcher {
	parsed, err := syntax.Parse(expression.String(), syntax.Perl)
	if err != nil {
		return expression
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || slices.ContainsFunc(program.Inst, isUnsupported) {
		return expression
	}
	b := builder{
		automaton: automaton{Regexp: expression}, program: program, set: make([]byte, len(program.Inst)),
		states: []string{""}, examples: []string{""}, rows: map[string]uint16{}, width: 1,
	}
	b.assignColumns()
	if !b.fill() {
		return expression
	}
	return new(b.automaton) // A pointer into the builder would keep its states, 0.5 MB for the contract.
}

func isUnsupported(i syntax.Inst) bool {
	return i.Op == syntax.InstEmptyWidth && i.Arg&^uint32(syntax.EmptyBeginText|syntax.EmptyEndText) != 0
}

// assignColumns assigns characters that match the same instructions to one column.
func (b *builder) assignColumns() {
	columns := map[string]uint16{}
	for character := range b.columns {
		for at := range b.set {
			b.set[at] = 0
			if b.program.Inst[at].MatchRune(rune(character)) {
				b.set[at] = 1
			}
		}
		if columns[string(b.set)] == 0 {
			columns[string(b.set)], b.characters = b.width, append(b.characters, rune(character))
			b.width++
		}
		b.columns[character] = columns[string(b.set)]
	}
}

// fill fills the table. It reports false if the table becomes too large.
func (b *builder) fill() bool {
	b.table = make([]uint16, b.width)
	clear(b.set)
	// The first instruction of a program fails. It distinguishes the first state, because only there the string begins.
	b.set[0] = 1
	b.reach(b.program.Start, syntax.EmptyBeginText)
	b.start = b.row("", "")
	for at := 1; at < len(b.states) && len(b.table) <= maxEntries; at++ {
		b.table = append(b.table, 0)
		if !b.Regexp.MatchString(b.examples[at]) {
			b.table[len(b.table)-1] = 1
		}
		for _, character := range b.characters {
			b.table = append(b.table, b.after(at, character))
		}
	}
	return len(b.table) <= maxEntries
}

// after returns the row of the state after a character.
func (b *builder) after(state int, character rune) uint16 {
	clear(b.set)
	// A match can begin anywhere.
	b.reach(b.program.Start, 0)
	for at := range b.set {
		if i := &b.program.Inst[at]; b.states[state][at] == 1 && i.MatchRune(character) {
			b.reach(int(i.Out), 0)
		}
	}
	return b.row(b.examples[state], string(character))
}

// reach adds an instruction, and those that follow it without a character, if the string matches these anchors here.
func (b *builder) reach(at int, anchors syntax.EmptyOp) {
	if b.set[at] == 1 {
		return
	}
	b.set[at] = 1
	switch i := &b.program.Inst[at]; {
	case i.Op == syntax.InstAlt:
		b.reach(int(i.Out), anchors)
		b.reach(int(i.Arg), anchors)
	case i.Op == syntax.InstEmptyWidth && i.Arg&^uint32(anchors) == 0,
		i.Op == syntax.InstCapture, i.Op == syntax.InstNop:
		b.reach(int(i.Out), anchors)
	}
}

// row returns the row of the set, which is new if the set is. The last instruction of a program ends a match.
func (b *builder) row(example, next string) uint16 {
	if b.set[len(b.set)-1] == 1 {
		return 0
	}
	row, ok := b.rows[string(b.set)]
	if !ok {
		b.last += b.width
		row, b.rows[string(b.set)] = b.last, b.last
		b.states, b.examples = append(b.states, string(b.set)), append(b.examples, example+next)
	}
	return row
}
