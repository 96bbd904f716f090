package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/gen/api"
)

// finding is a violation with its place in the answer.
type finding struct {
	violation
	pointer string
	// field is the place of the field in the contract; fields that it does not know stand behind all others.
	field int
	// element is the place in the list, or of an unknown field in the body.
	element int
}

// findings collects at most one finding for each pointer.
type findings struct {
	op   operation
	sent object
	// order is the place of each member in the body.
	order     map[string]int
	byPointer map[string]finding
	// closed has the pointers of the objects whose unknown fields are found: the validator reports each of them anew.
	closed map[string]bool
}

// maxValues is how many members and list elements a body may have for all its violations to be collected. More would
// let a body of 1 MiB cost hundreds of times its size.
const maxValues = 10_000

const crowdedDetail = "The body breaks at least one rule. It has more than 10000 values, too many to list all that " +
	"are wrong: mend the entry of errors and send it again."

// isCrowded tells whether only one violation is listed.
func (o object) isCrowded() bool { return o.values > maxValues }

// violated turns the validator's error, if any, into the refusal of a body, and adds what no schema can say. It returns
// nil where the body breaks no rule.
func violated(op operation, sent object, err error) error {
	if err == nil && len(sent.nul) == 0 {
		return nil
	}
	found := newFindings(op, sent)
	found.collect(err)
	found.addNUL()
	violations := found.inOrder()
	switch {
	case len(violations) == 0 && err != nil:
		return fmt.Errorf("validate request: %w", err)
	case len(violations) == 0:
		return nil
	case sent.isCrowded():
		return &refusal{slug: validationFailed, detail: crowdedDetail, violations: violations[:1]}
	}
	detail := "The body breaks a rule. Mend the entry of errors and send it again."
	if count := len(violations); count > 1 {
		detail = fmt.Sprintf("The body breaks %d rules. Mend every entry of errors and send it again.", count)
	}
	return &refusal{slug: validationFailed, detail: detail, violations: violations}
}

func newFindings(op operation, sent object) *findings {
	found := &findings{
		op: op, sent: sent, order: map[string]int{}, byPointer: map[string]finding{}, closed: map[string]bool{},
	}
	for i, name := range sent.names {
		found.order[name] = i
	}
	return found
}

// unreadable is the refusal of a body that is too large or did not arrive whole.
func unreadable(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &refusal{slug: tooLarge}
	}
	return &refusal{slug: malformedJSON, detail: "The body did not arrive whole. Send it again.", cause: err}
}

// collect walks the tree of errors that the validator returns.
func (f *findings) collect(err error) {
	var several openapi3.MultiError
	var broken *openapi3.SchemaError
	switch {
	case errors.As(err, &several):
		for _, one := range several {
			f.collect(one)
		}
	case errors.As(err, &broken) && broken.SchemaField == "properties":
		f.addUnknownFields(broken)
	case errors.As(err, &broken):
		f.add(broken.JSONPointer(), describe(broken))
	}
}

// addNUL adds the strings and member names with U+0000 in free-form objects, where no pattern can refuse them.
func (f *findings) addNUL() {
	for _, at := range f.sent.nul {
		if path := slices.Collect(at.Tokens()); f.op.freeForm[path[0]] {
			f.add(path, nulCharacter())
		}
	}
}

// addUnknownFields adds all fields of one object that its schema does not know.
func (f *findings) addUnknownFields(broken *openapi3.SchemaError) {
	path := broken.JSONPointer()
	object, ok := broken.Value.(map[string]any)
	at := pointer(path)
	if !ok || f.closed[at] {
		return
	}
	f.closed[at] = true
	names := f.sent.names
	if len(path) > 0 {
		names = slices.Sorted(maps.Keys(object))
	}
	for _, name := range names {
		if broken.Schema.Properties[name] == nil {
			f.add(append(slices.Clone(path), name), unknownField())
		}
	}
}

// add keeps, for each pointer, the violation of the first rule that applies.
func (f *findings) add(path []string, broken violation) {
	at := pointer(path)
	if known, ok := f.byPointer[at]; ok && known.rule <= broken.rule {
		return
	}
	f.byPointer[at] = finding{violation: broken, pointer: at, field: f.field(path), element: f.element(path)}
}

func (f *findings) field(path []string) int {
	if order, ok := f.op.fieldOrder[path[0]]; ok {
		return order
	}
	return math.MaxInt
}

func (f *findings) element(path []string) int {
	if len(path) == 1 {
		return f.order[path[0]]
	}
	index, err := strconv.Atoi(path[1])
	if err != nil {
		return 0
	}
	return index
}

// inOrder lists the violations in the order of the contract's fields, unknown fields last in the order of the body.
func (f *findings) inOrder() []api.Violation {
	sorted := slices.SortedFunc(maps.Values(f.byPointer), func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.element, b.element),
			cmp.Compare(a.pointer, b.pointer))
	})
	violations := make([]api.Violation, len(sorted))
	for i, one := range sorted {
		violations[i] = api.Violation{Pointer: one.pointer, Code: one.code, Detail: one.detail}
	}
	return violations
}

// pointer renders a path as a JSON pointer (RFC 6901 section 3).
func pointer(path []string) string {
	var result jsontext.Pointer
	for _, name := range path {
		result = result.AppendToken(name)
	}
	return string(result)
}
