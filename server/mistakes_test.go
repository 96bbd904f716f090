package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/storetest/processtest"
)

// TestMistakesAreExplained sends typical mistakes of new users, each in an otherwise correct request, and compares the
// responses. testdata has a title, the request, perhaps with a header, and the response, which PROVIDERD_WRITE_GOLDEN=1
// writes.
func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	const path = "testdata/mistakes.txt"
	h := start(t)
	want := processtest.Try(os.ReadFile(path)).Must(t)
	var got strings.Builder
	block := regexp.MustCompile(`(?ms)^(# .*?\n(\S+) (\S+)\n(?:([\w-]+): (.*?)\n)?(.*?)\n)\d{3} .*?\n\n`)
	mistakes := block.FindAllStringSubmatch(string(want), -1)
	if count := strings.Count("\n"+string(want), "\n# "); len(mistakes) != count || count == 0 {
		t.Fatalf("%d of %d blocks have the form of a mistake", len(mistakes), count)
	}
	for _, sent := range mistakes {
		answer := h.post(t, sent[3], sent[6], func(request *http.Request) {
			request.Method = sent[2]
			if sent[4] != "" {
				request.Header.Set(sent[4], sent[5])
			}
		})
		var problem model.Problem
		answer.decode(t, &problem)
		fmt.Fprintf(&got, "%s%d %s\n", sent[1], answer.status, problem.Detail)
		if problem.Errors != nil {
			for _, violation := range *problem.Errors {
				fmt.Fprintf(&got, "  %s %s: %s\n", violation.Pointer, violation.Code, violation.Detail)
			}
		}
		got.WriteString("\n")
	}
	if os.Getenv("PROVIDERD_WRITE_GOLDEN") != "" {
		processtest.Must(t, os.WriteFile(path, []byte(got.String()), 0o600))
	} else if got.String() != string(want) {
		t.Errorf("the answers are\n%s", got.String())
	}
}

// What users of other systems send is accepted or explained.
func TestRequestsOfOtherSystems(t *testing.T) {
	h := startParallel(t)
	for line := range bytes.Lines(processtest.Try(os.ReadFile("testdata/requests_of_other_systems.jsonl")).Must(t)) {
		var sent struct {
			ID, About, Method, Path, Body string
			// Headers replaces those of a usual request. $TOKEN stands for a valid token.
			Headers map[string]string
			Status  int
			// Says lists what the body, or the advice, must contain; with NoAdvice, there must be none.
			Says     []string
			NoAdvice bool `json:"no_advice"`
		}
		processtest.Must(t, json.Unmarshal(line, &sent))
		got := h.post(t, sent.Path, sent.Body, func(request *http.Request) {
			request.Method = sent.Method
			for name, value := range sent.Headers {
				request.Header.Set(name, strings.ReplaceAll(value, "$TOKEN", h.token))
			}
		})
		advice := got.header.Get("Link")
		processtest.Expect(t, got.status == sent.Status && (!sent.NoAdvice || advice == ""),
			"%s, %s: status is %d, want %d; advice is %q: %s", sent.ID, sent.About, got.status, sent.Status, advice, got.body)
		for _, want := range sent.Says {
			processtest.Expect(t, strings.Contains(string(got.body)+advice, want),
				"%s, %s: %q is missing in %s %s", sent.ID, sent.About, want, got.body, advice)
		}
	}
}

// TestLongFraming sends complete bodies with more around their chunks than is read. Sending them again would not help.
func TestLongFraming(t *testing.T) {
	h := startParallel(t)
	body := encode(t, minimal(oauth2Path))
	long := strings.Repeat("x", 20_000)
	for framed, detail := range map[string]string{
		fmt.Sprintf("%x;%s\r\n%s\r\n0\r\n\r\n", len(body), long, body):                                           "without chunk extensions",
		strings.Repeat("1;"+long[:2000]+"\r\n \r\n", 10) + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body): "without chunk extensions",
		fmt.Sprintf("%x\r\n%s\r\n0\r\nX: %s\r\n\r\n", len(body), body, long):                                     "without trailers",
	} {
		caller := connect(t, strings.TrimPrefix(h.url, "http://"))
		response := caller.send(t, h.head()+"Transfer-Encoding: chunked\r\n\r\n"+framed).want(t, http.StatusBadRequest)
		if got, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(got), detail) {
			t.Errorf("the response is %q, %v, want %q in it", got, err, detail)
		}
	}
}

// What Validate says of a body before it is sent is what the response to it says.
func TestMalformedJSON(t *testing.T) {
	t.Parallel()
	h, document := start(t), load(t)
	valid := encode(t, minimal(oauth2Path))
	nested := func(depth int) string {
		return `{"x":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	for says, bodies := range map[string][]string{
		"The body is empty. Send one JSON object; with curl -d @FILE, check": {"", " \n"},
		"byte order mark":   {"\ufeff" + valid},
		"not a JSON object": {"null", `"x"`, "1"},
		"The body is a list. Send one object per request.": {"[" + valid + "]", "[]", "["},
		"The body is a form, YAML or XML. Send one JSON object": {
			"name=x", "authorization_flow=x&name=y", "oauth2:\n- name: x", "<name/>", "--x\r\nContent-Disposition: form-data\r\n",
		},
		"ends inside the JSON object":                                        {valid[:len(valid)-1], `{"name":"`},
		"something follows the JSON object":                                  {valid + "x"},
		"At line 2, column 2 (byte 9): something follows the JSON object":    {"{\"a\":1}\n {\"b\":2}", "{\"a\":1}\n\t]"},
		"at /name: a member name is repeated":                                {`{"name":"a","name":"b"}`, `{"name":"a","n\u0061me":"b"}`},
		"at /credentials/a/0/b: a member name is repeated":                   {`{"credentials":{"a":[{"b":1,"b":2}]}}`},
		"at /name: this character is not allowed here or is not valid UTF-8": {"{\"name\":\"\xff\"}"},
		"not valid UTF-8":          {"{\"name\":\"\xc0\x80\"}"},
		"half of a surrogate pair": {`{"name":"\ud800"}`, `{"name":"\udc00x"}`},
		"At line 1, column 11 (byte 10), at /name: a string contains an unescaped control character": {"{\"name\":\"a\nb\"}"},
		`write \u0009 instead`: {"{\"name\":\"a\tb\"}"},
		`write \u001b instead`: {"{\"name\":\"a\x1bb\"}"},
		"outside strings, white space is spaces, tabs and line breaks":                {"\v" + valid, "{\"name\"\f:1}"},
		`names and strings must be in straight double quotes ("), not`:                {`{'name':'a'}`, `{"name":“a”}`, `{«name»:1}`, `'x'`},
		"names and strings must be in double quotes":                                  {`{name:"a"}`, `{"name”: "a"}`},
		"strings must be in double quotes":                                            {`{"name":a}`},
		"JSON has no comments":                                                        {`{/**/"name":"a"}`, "{# x\n}"},
		"At line 1, column 12 (byte 11): there is a comma before the closing bracket": {`{"name":"a",}`},
		"there is a comma before the closing bracket":                                 {`{"property_mappings":[1, ]}`},
		"not valid JSON": {`{"name":+1}`, `{"name":01}`},
		"other values are true, false, null and numbers, not True, None": {`{"name":NaN}`, `{"include_claims_in_id_token":True}`, `{"a":None}`},
		"numbers are decimal": {`{"credentials":{"a":0x1F}}`},
		"The body is compressed, or in an encoding other than UTF-8, such as UTF-16. Send the JSON in UTF-8, uncompressed.": {
			"\x1f\x8b\x08\x00", "x\x9c\x01", "\x28\xb5\x2f\xfd", "\x0b\x02\x80{}\x03", "\xff\xfe{\x00}\x00", "{\x00}\x00", "\x00{\x00}",
		},
		"name of a file instead of its contents. With curl, use -d @FILE.":     {"@./new-provider.json\n"},
		"The body is a string of JSON. Send the object itself, without":        {`"{\"name\":\"a\"}"`, `'{"name":"a"}'`, `“{}”`},
		"At line 1, column 2 (byte 1): not valid JSON":                         {`{name:"a"}`},
		"(byte 68): nesting exceeds":                                           {nested(65)},
		"a value is missing":                                                   {`{"name":"a",,"x":1}`, `{"name":}`},
		"a name, a comma or a colon is missing":                                {`{"name" "a"}`, `{"property_mappings":["a" "b"]}`, `{"name"="a"}`},
		"At line 2, column 3 (byte 15): a name, a comma or a colon is missing": {"{\"name\":\"ä\"\n  \"client_id\":\"b\"}"},
		"the closing bracket does not match":                                   {`{"property_mappings":["a"}}`},
		"an escape sequence":                                                   {`{"name":"\x"}`},
		"nesting exceeds 64 levels":                                            {nested(65), nested(100_000), strings.Repeat(`{"x":`, 1000)},
	} {
		for _, body := range bodies {
			problem := h.post(t, oauth2Path, body).problem(t, http.StatusBadRequest, "malformed-json")
			processtest.Contains(t, problem.Detail, says)
			if _, err := document.Validate(t.Context(), oauth2Operation, []byte(body)); err == nil || err.Error() != problem.Detail {
				t.Errorf("%.50s: foreseen is %v, answered %q", body, err, problem.Detail)
			}
		}
	}
	large := []byte(`{"name":"` + strings.Repeat("x", contract.MaxBodyBytes) + `"}`)
	_, err := document.Validate(t.Context(), oauth2Operation, large)
	processtest.Expect(t, err != nil, "a body over 1 MiB passes")
	_, err = document.Validate(t.Context(), "nothing", []byte("{}"))
	processtest.Expect(t, err != nil && document.RequestSchema("nothing") == nil, "the check returned %v", err)
	long := h.post(t, oauth2Path, `{"`+strings.Repeat("/", 500_000)+`":{"a":1,"a":2}}`)
	detail := long.problem(t, http.StatusBadRequest, "malformed-json").Detail
	processtest.Expect(t, len(detail) <= 1000 && strings.Contains(detail, "(byte 500011): a member name is repeated"),
		"detail under a long name is %.1000q", detail)
	list := violations(h.post(t, oauth2Path, nested(64)).problem(t, http.StatusBadRequest, "validation-failed"))
	processtest.Expect(t, list[len(list)-1] == "/x unknown_field", "64 levels: entries are %q", list)
	h.post(t, oauth2Path, " \r\n\t"+valid+"\n").record(t)
	h.post(t, oauth2Path, strings.Replace(valid, `"n"`, `"\ud83d\ude00"`, 1)).record(t)
}

// A header or a member of the body that is meant as a parameter never stores anything, lenient or not, and no value is
// quoted.
func TestMisplacedParameterNeverCreates(t *testing.T) {
	h := startParallel(t)
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
			processtest.Expect(t, detail == want && !strings.Contains(string(got.body), "hunter2"),
				"got %q, want %q", detail, want)
			for _, prefer := range []string{"handling=strict", "handling=lenient"} {
				got := h.post(t, path, encode(t, with(minimal(path), name, "hunter2")), set("Prefer", prefer))
				got.wantEntries(t, "/"+name+" unknown_field")
				want := fmt.Sprintf("`%s` is not a field of this request; %s", name, says)
				processtest.Expect(t, strings.Contains(string(got.body), want) && !strings.Contains(string(got.body), "hunter2"),
					"the response is %s, want %q", got.body, want)
			}
		}
	}
	body := encode(t, minimal(oauth2Path))
	for range 10 {
		got := h.post(t, oauth2Path, body, raw("X-Idempotency-Key"), raw("Dry-Run"), raw("Validate-Only"))
		detail := got.problem(t, http.StatusBadRequest, "invalid-header").Detail
		processtest.Expect(t, strings.HasPrefix(detail, `"Dry-Run"`), "the detail is %q, want that of the first name", detail)
	}
	h.post(t, oauth2Path, body, raw("Validate-Only"), set(keyHeader, "key")).problem(t, http.StatusBadRequest, "invalid-header")
	processtest.Equal(t, h.count(t), 0, "stored records")
	processtest.Expect(t, !strings.Contains(h.log.String(), "hunter2"), "the log has a value: %s", h.log)
	// Some gateways copy the key into other headers.
	h.post(t, oauth2Path, body, raw("X-Idempotency-Key"), set(keyHeader, "key")).record(t)
	h.post(t, oauth2Path, body, raw("X-Validated"), raw(strings.Repeat("n", 100)+"dry-run")).record(t)
}
