package server_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/providerd/server"
	"example.com/providerd/store/storetest/processtest"
)

// none is the value of a header that is not sent.
const none = "(none)"

// setLines sends a header field with each line of a value, or without a value.
func setLines(name, value string) func(*http.Request) {
	if value == none {
		return set(name)
	}
	return set(name, strings.Split(value, "\n")...)
}

func (h *harness) sendEach(t *testing.T, name string, values []string, check func(got answer) bool) {
	t.Helper()
	for _, value := range values {
		got := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), setLines(name, value))
		processtest.Expect(t, check(got), "%s %q: status is %d, %s", name, value, got.status, got.body)
	}
}

func isCreated(got answer) bool { return got.status == http.StatusCreated }

func TestAccept(t *testing.T) {
	h := startParallel(t)
	h.sendEach(t, "Accept", []string{
		none, "", "*/*", "application/*", "application/json", "APPLICATION/JSON", "application/json;version=2",
		"application/json; charset=utf-8", "text/html, application/json", "text/html\napplication/json",
		"text/html, */*;q=0.1", "application/json;q=0.001", "*/*;q=0, application/json",
		"application/json;q=0, application/json;version=2", `text/html;a="x, y", application/json`, "application/json;q=2",
		";;;", "*", "json", "*/json", "*;q=0, json;q=0", "application/",
	}, isCreated)
	h.sendEach(t, "Accept", []string{
		"text/html, *", "application/*json", "text/html", "application/problem+json", "application/json;q=0",
		"application/json;q=0.000, */*", "application/*;q=0, */*", "*/*;q=0", "text/*",
	}, func(got answer) bool { return got.problem(t, http.StatusNotAcceptable, "not-acceptable").Detail != "" })
}

func TestContentType(t *testing.T) {
	h := startParallel(t)
	isUnsupported := func(got answer) bool {
		got.problem(t, http.StatusUnsupportedMediaType, "unsupported-media-type")
		return got.header.Get("Accept-Post") == "application/json"
	}
	h.sendEach(t, "Content-Type", []string{
		"application/json", "Application/JSON", "application/json;charset=utf-8", `application/json; Charset="UTF-8"`,
		"application/json; charset=utf8",
	}, isCreated)
	for says, values := range map[string][]string{
		"The request has no Content-Type.": {none},
		"Content-Type has several values.": {"application/json\nApplication/JSON", "application/json, application/json"},
		"Content-Type is not application/json.": {
			"", "text/json", "application/x-www-form-urlencoded", "application/problem+json",
		},
		"Content-Type has a charset other than utf-8.":     {"application/json; charset=utf-16", "application/json; charset=iso-8859-1"},
		"Content-Type has the parameter version.":          {"application/json; version=2"},
		"Content-Type has a parameter other than charset.": {"application/json; hunter2=yes"},
	} {
		h.sendEach(t, "Content-Type", values, func(got answer) bool {
			return isUnsupported(got) && strings.Contains(string(got.body), says+" Send ")
		})
	}
	h.sendEach(t, "Content-Encoding", []string{"identity", "Identity, identity"}, isCreated)
	h.sendEach(t, "Content-Encoding", []string{"gzip", "identity\nbr", "utf-8"}, func(got answer) bool {
		return isUnsupported(got) && strings.Contains(string(got.body), "Content-Encoding is not identity. Send ")
	})
}

func TestLenientHandlingIgnoresUnknownFields(t *testing.T) {
	h := startParallel(t)
	body := minimal(oauth2Path)
	body["pk"], body["Client_Type"], body["x\x00"] = 7, "evil", map[string]any{"a\x00": 1}
	for _, prefer := range []string{
		"handling=lenient", "Handling=LENIENT", `handling="lenient"`, `handling = "lenient"`,
		"respond-async, handling=lenient; x=1", "respond-async\nhandling=lenient", `x="a, b", handling=lenient`,
		"\nhandling=lenient", "handling=lenient, handling=strict", "=, ;, handling=lenient",
	} {
		got := h.post(t, oauth2Path, encode(t, body), setLines("Prefer", prefer))
		record := got.record(t)
		processtest.Expect(t, record["client_type"] == "confidential" && record["pk"] != 7,
			"Prefer %q: an ignored field is in the record: %v", prefer, record)
		applied := got.header.Get("Preference-Applied")
		processtest.Expect(t, applied == "handling=lenient", "Prefer %q: Preference-Applied is %q", prefer, applied)
	}
	for _, prefer := range []string{
		none, "", "handling", "handling=strict", "handling=strict, handling=lenient", "respond-async",
		`x="handling=lenient"`, "x; handling=lenient", `handling="lenient`, "handling=lenient2", "handlings=lenient",
		`x="\", handling=lenient"`, "\x80", "handling=\"\\",
	} {
		got := h.post(t, oauth2Path, encode(t, body), setLines("Prefer", prefer))
		got.problem(t, http.StatusBadRequest, "validation-failed")
		applied := got.header.Get("Preference-Applied")
		processtest.Expect(t, applied == "", "Prefer %q: Preference-Applied is %q", prefer, applied)
	}
	lenient := set("Prefer", "handling=lenient")
	got := h.post(t, oauth2Path, `{"x":1,"name":"","sub_mode":"x"}`, lenient)
	got.wantEntries(t, "/name empty", "/authorization_flow required", "/sub_mode enum")
	processtest.Expect(t, got.header.Get("Preference-Applied") == "handling=lenient",
		"Preference-Applied is %q", got.header.Get("Preference-Applied"))
	h.post(t, oauth2Path, `{"x":1,"x":2}`, lenient).problem(t, http.StatusBadRequest, "malformed-json")
}

// target is a server in the same process, with a token for it.
type target struct {
	handler http.Handler
	token   string
	// into receives the bodies of responses; each has its own buffer if it is nil.
	into *bytes.Buffer
}

// newTarget starts a server without a listener. Each change is applied to its configuration.
func newTarget(t testing.TB, changes ...func(*server.Config)) target {
	t.Helper()
	h := start(t)
	return target{handler: h.newServer(t, changes...), token: h.token}
}

// post sends a create. Each change is applied to the request before it is sent.
func (s target) post(path, body string, changes ...func(*http.Request)) answer {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for _, change := range append([]func(*http.Request){
		set("Authorization", "Bearer "+s.token), set("Content-Type", "application/json"),
	}, changes...) {
		change(request)
	}
	recorder := httptest.NewRecorder()
	if s.into != nil {
		s.into.Reset()
		recorder.Body = s.into
	}
	s.handler.ServeHTTP(recorder, request)
	return answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
}

// FuzzHeaders sends any headers. None may cause a 5xx, an undocumented response, or a success without the token.
func FuzzHeaders(f *testing.F) {
	target := newTarget(f)
	valid := "Bearer " + target.token
	f.Add(valid, "application/json;q=0.5, */*", "application/json; charset=utf-8", "identity", "handling=lenient", "id-1")
	f.Add(valid, `text/html;a="x,\"y", application/*;q=0`, `application/json;charset="utf-8"`, "gzip,,", `handling="le\nient"`, "")
	f.Add(valid, ";;q=,", ";", ",", `="`, " ")
	f.Add("Bearer x", "", "", "", "", "")
	f.Add("bearer  pvd_"+strings.Repeat("0", 40), "", "", "", "", "")
	f.Add("Basic eDp5", "", "", "", "", "")
	body := encode(f, minimal(oauth2Path))
	f.Fuzz(func(t *testing.T, authorization, accept, contentType, contentEncoding, prefer, requestID string) {
		got := target.post(oauth2Path, body,
			set("Authorization", authorization), set("Accept", strings.Split(accept, "\n")...), set("Content-Type", contentType),
			set("Content-Encoding", contentEncoding), set("Prefer", strings.Split(prefer, "\n")...), set("X-Request-Id", requestID))
		processtest.Check(t, got.check(oauth2Path))
		processtest.Expect(t, got.status < http.StatusInternalServerError, "status is %d: %s", got.status, got.body)
		known := strings.Contains(authorization, target.token)
		processtest.Expect(t, got.status == http.StatusUnauthorized || known, "%q is answered %d", authorization, got.status)
	})
}
