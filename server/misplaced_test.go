package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A header or a member of the body that is meant as a parameter never stores anything, lenient or not, and no value is
// quoted.
func TestMisplacedParameterNeverCreates(t *testing.T) {
	t.Parallel()
	h := start(t)
	const validates = "to validate, send ?validate_only=true in the query."
	const hasKey = "send the key in the header Idempotency-Key."
	raw := func(name string) func(*http.Request) {
		return func(request *http.Request) { request.Header[name] = []string{"hunter2"} }
	}
	refused := map[string]string{
		"validate_only": validates, "Validate-Only": validates, "VALIDATEONLY": validates, "X-Validate-Only": validates,
		"x_validate_only": validates, "Dry-Run": validates, "X-DryRun": validates,
		"idempotency_key": hasKey, "X-Idempotency-Key": hasKey, "IdempotencyKey": hasKey, "Idempotency-Token": hasKey,
		"Idempotence-Key": hasKey, "x-idempotent-key": hasKey,
	}
	for _, path := range []string{oauth2Path, workspaceDirectoryPath} {
		body := encode(t, minimal(path))
		for name, says := range refused {
			got := h.post(t, path, body, raw(name))
			detail := got.problem(t, http.StatusBadRequest, "invalid-header").Detail
			want := fmt.Sprintf("%q is not a header of this operation; %s", http.CanonicalHeaderKey(name), says)
			if detail != want || strings.Contains(string(got.body), "hunter2") {
				t.Errorf("the detail is %q, want %q", detail, want)
			}
			for _, prefer := range []string{"handling=strict", "handling=lenient"} {
				got := h.post(t, path, encode(t, with(minimal(path), name, "hunter2")), set("Prefer", prefer))
				got.wantEntries(t, "/"+name+" unknown_field")
				want := fmt.Sprintf("`%s` is not a field of this request; %s", name, says)
				if !strings.Contains(string(got.body), want) || strings.Contains(string(got.body), "hunter2") {
					t.Errorf("the response is %s, want %q", got.body, want)
				}
			}
		}
	}
	body := encode(t, minimal(oauth2Path))
	for range 10 {
		got := h.post(t, oauth2Path, body, raw("X-Idempotency-Key"), raw("Dry-Run"), raw("Validate-Only"))
		if detail := got.problem(t, http.StatusBadRequest, "invalid-header").Detail; !strings.HasPrefix(detail, `"Dry-Run"`) {
			t.Errorf("the detail is %q, want that of the first name", detail)
		}
	}
	h.post(t, oauth2Path, body, raw("Validate-Only"), set(keyHeader, "key")).problem(t, http.StatusBadRequest, "invalid-header")
	if count := h.count(t); count != 0 {
		t.Errorf("%d records are stored", count)
	}
	if strings.Contains(h.log.String(), "hunter2") {
		t.Errorf("the log has a value: %s", h.log)
	}
	// Some gateways copy the key into other headers.
	h.post(t, oauth2Path, body, raw("X-Idempotency-Key"), set(keyHeader, "key")).record(t)
	h.post(t, oauth2Path, body, raw("X-Validated"), raw(strings.Repeat("n", 100)+"dry-run")).record(t)
}
