package server_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestMalformedJSON(t *testing.T) {
	t.Parallel()
	h := start(t)
	valid := encode(t, minimal(oauth2Path))
	nested := func(depth int) string {
		return `{"x":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	for name, test := range map[string]struct{ body, detail string }{
		"empty":                {"", "The body is empty."},
		"blank":                {" \n", "The body is empty."},
		"byte order mark":      {"\ufeff" + valid, "byte order mark"},
		"null":                 {"null", "not a JSON object"},
		"list":                 {"[" + valid + "]", "not a JSON object"},
		"string":               {`"x"`, "not a JSON object"},
		"rubbish":              {"name=x", "not a JSON object"},
		"cut off":              {valid[:len(valid)-1], "ends before its JSON object does"},
		"cut off in a string":  {`{"name":"`, "ends before its JSON object does"},
		"two objects":          {valid + valid, "something follows the JSON object"},
		"text after":           {valid + "x", "something follows the JSON object"},
		"name twice":           {`{"name":"a","name":"b"}`, "at /name, a member name occurs twice"},
		"escaped name twice":   {`{"name":"a","n\u0061me":"b"}`, "at /name, a member name occurs twice"},
		"name twice, deep":     {`{"credentials":{"a":[{"b":1,"b":2}]}}`, "at /credentials/a/0/b, a member name occurs twice"},
		"invalid UTF-8":        {"{\"name\":\"\xff\"}", "not valid JSON in UTF-8"},
		"overlong UTF-8":       {"{\"name\":\"\xc0\x80\"}", "not valid JSON in UTF-8"},
		"lone high surrogate":  {`{"name":"\ud800"}`, "not valid JSON in UTF-8"},
		"lone low surrogate":   {`{"name":"\udc00x"}`, "not valid JSON in UTF-8"},
		"raw control":          {"{\"name\":\"a\nb\"}", "not valid JSON in UTF-8"},
		"single quotes":        {`{'name':'a'}`, "not valid JSON in UTF-8"},
		"comment":              {`{/**/"name":"a"}`, "not valid JSON in UTF-8"},
		"comma at the end":     {`{"name":"a",}`, "not valid JSON in UTF-8"},
		"number with a plus":   {`{"name":+1}`, "not valid JSON in UTF-8"},
		"number with a zero":   {`{"name":01}`, "not valid JSON in UTF-8"},
		"NaN":                  {`{"name":NaN}`, "not valid JSON in UTF-8"},
		"65 levels":            {nested(65), "deeper than 64 levels"},
		"100,000 levels":       {nested(100_000), "deeper than 64 levels"},
		"never-ending nesting": {strings.Repeat(`{"x":`, 1000), "deeper than 64 levels"},
	} {
		got := h.post(t, oauth2Path, test.body)
		problem := got.problem(t, http.StatusBadRequest, "malformed-json")
		if !strings.Contains(problem.Detail, test.detail) {
			t.Errorf("%s: detail is %q, want %q in it", name, problem.Detail, test.detail)
		}
	}
	long := h.post(t, oauth2Path, `{"`+strings.Repeat("/", 500_000)+`":{"a":1,"a":2}}`)
	detail := long.problem(t, http.StatusBadRequest, "malformed-json").Detail
	if len(detail) > 1000 || !strings.Contains(detail, "At byte 500011 a member name occurs twice") {
		t.Errorf("detail under a long name is %.1000q", detail)
	}
	problem := h.post(t, oauth2Path, nested(64)).problem(t, http.StatusBadRequest, "validation-failed")
	if list := violations(problem); list[len(list)-1] != "/x unknown_field" {
		t.Errorf("64 levels: entries are %q", list)
	}
	h.post(t, oauth2Path, " \r\n\t"+valid+"\n").record(t)
	h.post(t, oauth2Path, strings.Replace(valid, `"n"`, `"\ud83d\ude00"`, 1)).record(t)
}
