package pattern

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestAutomataMatchLikeRegexp takes each transition of the automata of the contract, and distinguishes the state that it
// leads to from all others. So a difference would take a regexp with more states.
func TestAutomataMatchLikeRegexp(t *testing.T) {
	t.Parallel()
	for _, expression := range contracttest.Patterns(t) {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			built, ok := build(regexp.MustCompile(expression)).(*automaton)
			processtest.Require(t, ok, "has no automaton")
			examples := built.examples()
			endings := built.endings(slices.Collect(maps.Keys(examples)))
			t.Logf("%d states, %d columns, %d bytes", len(examples), slices.Max(built.columns[:]), 2*len(built.table))
			for _, example := range examples {
				for character, column := range built.columns {
					next := endings
					if slices.Index(built.columns[:], column) < character {
						next = []string{"", "é"}
					}
					for _, ending := range next {
						checkVerdict(t, built.Regexp, built, example+string(rune(character))+ending)
					}
				}
			}
		})
	}
}

// FuzzVerdicts compares the verdicts on a string by all expressions of the contract and another one.
func FuzzVerdicts(f *testing.F) {
	isRepeatedOften := regexp.MustCompile(`[0-9]{2}`)
	var automata []*automaton
	for _, expression := range contracttest.Patterns(f) {
		automata = append(automata, build(regexp.MustCompile(expression)).(*automaton))
		for _, example := range automata[len(automata)-1].examples() {
			f.Add("", example)
		}
	}
	for _, expression := range []string{
		"$^", "^$|a", "a|^b", "(?i)mass|K", "(?s)^.*$", "(a|b)*?c+", `\x{FFFD}`, `[^\x00-\x{10FFFF}]`, `a\b`, "(?m)^a", "(",
	} {
		for _, text := range []string{"", "a", "ab", "b\na", "MA\u017fS", "\u212a", "\xff"} {
			f.Add(expression, text)
		}
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		for _, built := range automata {
			checkVerdict(t, built.Regexp, built, text)
		}
		if len(expression) > 40 || isRepeatedOften.MatchString(expression) {
			return // Building the table can take long.
		}
		compiled, invalid := regexp.Compile(expression)
		matcher, err := Compiler()(expression)
		processtest.Require(t, (err == nil) == (invalid == nil), "%q: %v instead of %v", expression, err, invalid)
		if err == nil {
			checkVerdict(t, compiled, matcher, text)
		}
	})
}

func TestRestIsLeftToRegexp(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{`\bword`, `\Bword`, "(?m)^line", "(?m)line$", "(a|b)*a(a|b){15}"} {
		matcher, err := Compiler()(expression)
		processtest.Expect(t, fmt.Sprintf("%T", matcher) == "*regexp.Regexp", "%s: %T, %v", expression, matcher, err)
	}
}

func checkVerdict(t *testing.T, expression *regexp.Regexp, matcher openapi3.RegexMatcher, text string) {
	t.Helper()
	if got, want := matcher.MatchString(text), expression.MatchString(text); got != want {
		t.Fatalf("%s: %q: %t instead of %t", expression, text, got, want)
	}
}

// examples returns a shortest string that leads to each state.
func (a *automaton) examples() map[uint16]string {
	examples, found := map[uint16]string{a.start: ""}, []uint16{a.start}
	for at := 0; at < len(found); at++ {
		for character, column := range a.columns {
			next := a.table[found[at]+column]
			if _, ok := examples[next]; !ok {
				examples[next], found = examples[found[at]]+string(rune(character)), append(found, next)
			}
		}
	}
	return examples
}

// endings returns strings that distinguish all states that any string distinguishes.
func (a *automaton) endings(states []uint16) (endings []string) {
	type class struct {
		before  int
		matches bool
	}
	classes, count := map[uint16]int{}, 1
	divide := func(ending string) {
		known, divided, from := map[class]int{}, map[uint16]int{}, *a
		for _, from.start = range states {
			key := class{classes[from.start], from.MatchString(ending)}
			if _, ok := known[key]; !ok {
				known[key] = len(known)
			}
			divided[from.start] = known[key]
		}
		if len(known) > count {
			classes, count, endings = divided, len(known), append(endings, ending)
		}
	}
	divide("")
	for at := 0; at < len(endings); at++ {
		for character := range a.columns {
			divide(string(rune(character)) + endings[at])
		}
	}
	return endings
}
