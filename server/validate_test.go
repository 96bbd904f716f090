package server_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
)

// Check reports the same before a body is sent as the response to it.
func TestCheckSaysWhatTheAnswerSays(t *testing.T) {
	t.Parallel()
	h := start(t)
	document := load(t)
	operations := map[string]string{oauth2Path: oauth2Operation, workspaceDirectoryPath: workspaceDirectoryOperation}
	for _, test := range allFieldCases() {
		body := minimal(test.path)
		test.change(body)
		text := encode(t, body)
		foreseen, err := document.Validate(t.Context(), operations[test.path], []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := h.post(t, test.path, text)
		var answered []model.Violation
		if got.status == http.StatusBadRequest {
			answered = *got.problem(t, http.StatusBadRequest, "validation-failed").Errors
		}
		if encode(t, foreseen) != encode(t, answered) {
			t.Errorf("%s: foreseen is %v, answered %v", text, foreseen, answered)
		}
	}
	for _, text := range []string{"", "[]", "{", `{"a":1,"a":2}`, `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}"} {
		_, err := document.Validate(t.Context(), oauth2Operation, []byte(text))
		problem := h.post(t, oauth2Path, text).problem(t, http.StatusBadRequest, "malformed-json")
		if err == nil || err.Error() != problem.Detail {
			t.Errorf("%s: foreseen is %v, answered %q", text, err, problem.Detail)
		}
	}
	large := []byte(`{"name":"` + strings.Repeat("x", contract.MaxBodyBytes) + `"}`)
	if _, err := document.Validate(t.Context(), oauth2Operation, large); err == nil {
		t.Error("a body over 1 MiB passes")
	}
	if _, err := document.Validate(t.Context(), "nothing", []byte("{}")); err == nil || document.RequestSchema("nothing") != nil {
		t.Errorf("an operation that does not exist has a schema, or is checked with %v", err)
	}
}
