package server_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/gen/model"
)

// field is a row of the reference's tables: what a request may and may not contain in a field.
type field struct {
	name string
	// required is true if there is no default; otherwise absent is the default, or absentMatches a pattern for it.
	required bool
	absent   any
	// nullable is true if null is accepted and returned as null.
	nullable bool
	// accepts has values that are returned unchanged; acceptsAs has others.
	accepts   []any
	acceptsAs [][2]any
	refuses   []refusal
}

// refusal is a value and the only entry that it gets.
type refusal struct {
	value   any
	code    string
	pointer string // under the field's own, "" for the field itself
}

// fieldCase is a body that differs from the smallest one in one field.
type fieldCase struct {
	path, field, title string
	change             func(body map[string]any)
	// want is the field of the record. If wantEntry is not empty, it is the only entry of the refusal.
	want      any
	wantEntry string
}

func (f field) cases(path string) []fieldCase {
	sent := func(value any) func(map[string]any) { return func(body map[string]any) { body[f.name] = value } }
	var cases []fieldCase
	add := func(title string, change func(map[string]any), want any, entry string) {
		cases = append(cases, fieldCase{path, f.name, title, change, want, entry})
	}
	remove := func(body map[string]any) { delete(body, f.name) }
	switch {
	case f.required:
		add("absent", remove, nil, "/"+f.name+" required")
	default:
		add("absent", remove, f.absent, "")
	}
	if f.nullable {
		add("null", sent(nil), nil, "")
	} else {
		add("null", sent(nil), nil, "/"+f.name+" null")
	}
	for i, value := range f.accepts {
		add(fmt.Sprintf("accepts %d", i), sent(value), value, "")
	}
	for i, pair := range f.acceptsAs {
		add(fmt.Sprintf("accepts as %d", i), sent(pair[0]), pair[1], "")
	}
	for i, wrong := range f.refuses {
		add(fmt.Sprintf("refuses %d %s", i, wrong.code), sent(wrong.value), nil,
			"/"+f.name+wrong.pointer+" "+wrong.code)
	}
	return cases
}

// body returns the body of the case.
func (c fieldCase) body(t testing.TB) string {
	t.Helper()
	body := minimal(c.path)
	c.change(body)
	return encode(t, body)
}

// check returns what is wrong with the response; nil if nothing is.
func (c fieldCase) check(t testing.TB, got answer) error {
	t.Helper()
	if c.wantEntry != "" {
		if list := violations(got.problem(t, http.StatusBadRequest, "validation-failed")); !slices.Equal(list, []string{c.wantEntry}) {
			return fmt.Errorf("status is %d, entries are %q, want %q", got.status, list, c.wantEntry)
		}
		return nil
	}
	if got.status != http.StatusCreated {
		return fmt.Errorf("status is %d, want 201: %s", got.status, got.body)
	}
	value := got.record(t)[c.field]
	matches, isPattern := c.want.(func(any) bool)
	if isPattern && !matches(value) || !isPattern && !reflect.DeepEqual(value, roundTrip(t, c.want)) {
		return fmt.Errorf("returned as %v, want %v", value, c.want)
	}
	return nil
}

// allFieldCases returns the cases of every field, and of unknown fields.
func allFieldCases() []fieldCase {
	var cases []fieldCase
	for path, rows := range map[string][]field{oauth2Path: oauth2Fields(), workspaceDirectoryPath: workspaceDirectoryFields()} {
		for _, row := range rows {
			cases = append(cases, row.cases(path)...)
		}
		for _, name := range []string{"pk", "Name", "component", "x"} {
			cases = append(cases, fieldCase{
				path: path, title: name, change: func(body map[string]any) { body[name] = "x" },
				wantEntry: "/" + name + " unknown_field",
			})
		}
	}
	return cases
}

// What Validate says of each body before it is sent is what the response to it says.
func TestFields(t *testing.T) {
	t.Parallel()
	h, document := start(t), load(t)
	operations := map[string]string{oauth2Path: oauth2Operation, workspaceDirectoryPath: workspaceDirectoryOperation}
	for _, test := range allFieldCases() {
		t.Run(strings.Join([]string{test.path, test.field, test.title}, " "), func(t *testing.T) {
			t.Parallel()
			body := test.body(t)
			got := h.post(t, test.path, body)
			if err := test.check(t, got); err != nil {
				t.Error(err)
			}
			var answered []model.Violation
			if got.status == http.StatusBadRequest {
				answered = *got.problem(t, http.StatusBadRequest, "validation-failed").Errors
			}
			foreseen, err := document.Validate(t.Context(), operations[test.path], []byte(body))
			if err != nil || encode(t, foreseen) != encode(t, answered) {
				t.Errorf("foreseen is %v, %v, answered %v", foreseen, err, answered)
			}
		})
	}
}
