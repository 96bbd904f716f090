package server_test

import (
	"net/http"
	"strings"
	"testing"
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

// sendEach sends a create with each value of a header.
func (h *harness) sendEach(t *testing.T, name string, values []string, check func(got answer) bool) {
	t.Helper()
	for _, value := range values {
		if got := h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), setLines(name, value)); !check(got) {
			t.Errorf("%s %q: status is %d, %s", name, value, got.status, got.body)
		}
	}
}

func isCreated(got answer) bool { return got.status == http.StatusCreated }

func TestAccept(t *testing.T) {
	t.Parallel()
	h := start(t)
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
	t.Parallel()
	h := start(t)
	isUnsupported := func(got answer) bool {
		got.problem(t, http.StatusUnsupportedMediaType, "unsupported-media-type")
		return got.header.Get("Accept-Post") == "application/json"
	}
	h.sendEach(t, "Content-Type", []string{
		"application/json", "Application/JSON", "application/json;charset=utf-8", `application/json; Charset="UTF-8"`,
		"application/json; charset=utf8",
	}, isCreated)
	const several = "The request does not have exactly one Content-Type."
	for value, says := range map[string]string{
		none: several, "application/json\nApplication/JSON": several,
		"": "Content-Type is not application/json.", "text/plain": "Content-Type is not application/json.",
		"application/x-www-form-urlencoded":    "Content-Type is not application/json.",
		"application/problem+json":             "Content-Type is not application/json.",
		"application/json, text/plain":         "Content-Type is not application/json.",
		"application/json; charset=utf-16":     "Content-Type has a charset other than utf-8.",
		"application/json; charset=iso-8859-1": "Content-Type has a charset other than utf-8.",
		"application/json; version=2":          "Content-Type has the parameter version.",
		"application/json; hunter2=yes":        "Content-Type has a parameter other than charset.",
	} {
		h.sendEach(t, "Content-Type", []string{value}, func(got answer) bool {
			return isUnsupported(got) && strings.Contains(string(got.body), says+" Send ")
		})
	}
	h.sendEach(t, "Content-Encoding", []string{"identity", "Identity, identity"}, isCreated)
	h.sendEach(t, "Content-Encoding", []string{"gzip", "identity\nbr"}, isUnsupported)
}
