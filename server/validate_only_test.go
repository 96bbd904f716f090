package server_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/gen/api"
)

const validateOnly = "?validate_only=true"

// verdict returns the verdict of the response.
func (a answer) verdict(t *testing.T) api.Verdict {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status is %d, want 200: %s", a.status, a.body)
	}
	var verdict api.Verdict
	a.decode(t, &verdict)
	if verdict.Advice == nil {
		t.Errorf("there is no list of advice: %s", a.body)
	}
	return verdict
}

// The verdict has the advice for the requested settings, created before or not, but not for generated values.
func TestVerdictHasAdvice(t *testing.T) {
	t.Parallel()
	h := start(t)
	for path, change := range map[string]func(map[string]any) (pointer string){
		oauth2Path: func(body map[string]any) string {
			body["redirect_uris"] = "https://example.com/\nhttp://example.com/"
			return "/redirect_uris"
		},
		workspaceDirectoryPath: func(body map[string]any) string {
			body["user_delete_action"] = "delete"
			return "/user_delete_action"
		},
	} {
		body := minimal(path)
		if verdict := h.post(t, path+validateOnly, encode(t, body)).verdict(t); len(verdict.Advice) != 0 {
			t.Errorf("advice for the smallest body is %v", verdict.Advice)
		}
		pointer := change(body)
		h.post(t, path, encode(t, body), set(keyHeader, path)).record(t)
		for _, key := range []string{path, "another"} {
			verdict := h.post(t, path+validateOnly, encode(t, body), set(keyHeader, key)).verdict(t)
			if len(verdict.Advice) != 1 || verdict.Advice[0].Pointer != pointer || verdict.Advice[0].Section == "" {
				t.Errorf("advice is %+v, want one for %s", verdict.Advice, pointer)
			}
		}
	}
}

// A typo in the query never stores anything, and no value is quoted.
func TestMistypedQueryNeverCreates(t *testing.T) {
	t.Parallel()
	h := start(t)
	body := encode(t, minimal(oauth2Path))
	const value = "must appear at most once, as validate_only=true or validate_only=false."
	const meant = "Did you mean validate_only?"
	for query, says := range map[string]string{
		"validate_only":                            value,
		"validate_only=":                           value,
		"validate_only=1":                          value,
		"validate_only=True":                       value,
		"validate_only=TRUE":                       value,
		"validate_only=yes":                        value,
		"validate_only=hunter2":                    value,
		"validate_only=true%20":                    value,
		"validate_only=%22true%22":                 value,
		"validate_only=true&validate_only=true":    value,
		"validate_only=true&validate_only=false":   value,
		"validate-only=true":                       `"validate-only"`,
		"validateOnly=true":                        meant,
		"validateonly=true":                        meant,
		"VALIDATE_ONLY=true":                       meant,
		"valdiate_only=true":                       meant,
		"validate_only%20=true":                    meant,
		"validate_only=true&dry_run=hunter2":       `"dry_run" is not a query parameter of this operation`,
		"access_token=hunter2":                     `"access_token" is not`,
		"=":                                        `"" is not`,
		"=hunter2":                                 `"" is not`,
		"%00=1":                                    `"\x00" is not`,
		"validate_only=true;hunter2":               "The query cannot be read.",
		"validate_only=true&x;hunter2":             "The query cannot be read.",
		"validate_only=%zzhunter2":                 "The query cannot be read.",
		"%zz=hunter2":                              "The query cannot be read.",
		strings.Repeat("n", 4000) + "=hunter2":     strings.Repeat("n", 64) + `…" is not`,
		strings.Repeat("validate_only=true&", 300): value,
	} {
		got := h.post(t, oauth2Path+"?"+query, body)
		problem := got.problem(t, http.StatusBadRequest, "invalid-parameter")
		if !strings.Contains(problem.Detail, says) || strings.Contains(string(got.body), "hunter2") {
			t.Errorf("%.50s: the detail is %q, want %q", query, problem.Detail, says)
		}
	}
	if count := h.count(t); count != 0 {
		t.Errorf("%d records are stored", count)
	}
	if strings.Contains(h.log.String(), "hunter2") {
		t.Errorf("the log has a value: %s", h.log)
	}
	for _, query := range []string{"?", "?&", "?validate_only=false", "?validate_only=fals%65"} {
		h.post(t, oauth2Path+query, body).record(t)
	}
}
