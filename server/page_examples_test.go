package server_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/contract"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

func pageExample(t *testing.T, page []byte) (bad, good string) {
	t.Helper()
	examples := regexp.MustCompile(`(?s)<pre class="(?:bad|good)">(.*?)</pre>`).FindAllSubmatch(page, -1)
	processtest.Require(t, len(examples) == 2, "%d examples, want 2: %s", len(examples), page)
	return html.UnescapeString(string(examples[0][1])), html.UnescapeString(string(examples[1][1]))
}

// TestExamplesOfProblems sends each problem's examples: the bad one gets the page's response, the good one succeeds.
func TestExamplesOfProblems(t *testing.T) {
	t.Parallel()
	for slug, status := range map[string]int{
		"malformed-json": 400, "validation-failed": 400, "invalid-parameter": 400, "invalid-header": 400,
		"unauthorized": 401, "forbidden": 403, "not-found": 404, "method-not-allowed": 405, "not-acceptable": 406,
		"client-id-taken": 409, "too-large": 413, "unsupported-media-type": 415, "idempotency-key-reused": 422,
	} {
		t.Run(slug, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			body := with(with(minimal(oauth2Path), "name", "First"), "client_id", "web-shop")
			h.post(t, oauth2Path, encode(t, body), set("Idempotency-Key", "intranet")).record(t)
			page := h.send(t, http.MethodGet, "/problems/"+slug, nil).body
			bad, good := pageExample(t, page)
			got := h.sendExample(t, bad)
			got.problem(t, status, slug)
			processtest.Equal(t, withoutIDs(t, got.body), withoutIDs(t, pageResponse(t, page)), "response, and that of the page")
			processtest.Equal(t, h.sendExample(t, good).status/100, 2, "class of the status of %s", good)
		})
	}
}

func pageResponse(t *testing.T, page []byte) []byte {
	t.Helper()
	shown := regexp.MustCompile(`(?s)<pre>(.*)</pre>`).FindSubmatch(page)
	processtest.Require(t, shown != nil, "no response: %s", page)
	return []byte(html.UnescapeString(string(shown[1])))
}

// withoutIDs returns the members of a problem, without the ids of the request and of a record.
func withoutIDs(t *testing.T, text []byte) (members map[string]any) {
	t.Helper()
	text = regexp.MustCompile(`provider \d+`).ReplaceAll(text, []byte("provider"))
	processtest.Must(t, json.Unmarshal(text, &members))
	delete(members, "request_id")
	delete(members, "pk")
	return members
}

// sendExample sends a create in which the example replaces the request line, a header, the body or the token.
func (h *harness) sendExample(t *testing.T, example string) answer {
	t.Helper()
	method, path, body := http.MethodPost, oauth2Path, encode(t, minimal(oauth2Path))
	header := set("Authorization", "Bearer "+h.token)
	name, value, isHeader := strings.Cut(example, ": ")
	switch {
	case strings.HasPrefix(example, "{"):
		body = example
	case strings.HasPrefix(example, "providerd token create "):
		header = set("Authorization", "Bearer "+h.newToken(t, "ci", time.Hour, example[strings.LastIndex(example, " ")+1:]))
	case name == "Content-Length":
		body += strings.Repeat(" ", processtest.Try(strconv.Atoi(value)).Must(t)-len(body))
	case isHeader:
		header = set(name, strings.ReplaceAll(value, "TOKEN", h.token))
	default:
		method, path, _ = strings.Cut(example, " ")
	}
	return h.post(t, path, body, header, func(request *http.Request) { request.Method = method })
}

// TestAdviceIsListed validates each rule's examples: the bad one gets the advice, and the good one none for its field.
func TestAdviceIsListed(t *testing.T) {
	h := startParallel(t)
	items := regexp.MustCompile(`(?s)<li[ >].*?</li>`).FindAllString(string(h.send(t, http.MethodGet, "/advice/", nil).body), -1)
	rules := slices.Concat(advice.OAuth2Rules(), advice.WorkspaceDirectoryRules())
	processtest.Require(t, len(items) == len(rules), "%d rules are listed, want %d", len(items), len(rules))
	for i, rule := range rules {
		for _, text := range []string{rule.Pointer, rule.Code, rule.When, rule.Detail, rule.Section} {
			processtest.Contains(t, html.UnescapeString(items[i]), text)
		}
		path := oauth2Path
		if i >= len(advice.OAuth2Rules()) {
			path = workspaceDirectoryPath
		}
		bad, good := pageExample(t, []byte(items[i]))
		anchor := `rel="help"; anchor="#` + rule.Pointer + `"; title="`
		processtest.Expect(t, strings.Contains(h.adviceFor(t, path, bad), "</advice/#"+rule.Code+">; "+anchor) &&
			!strings.Contains(h.adviceFor(t, path, good), anchor),
			"%s at %s: %s must get the advice, and %s none", rule.Code, rule.Pointer, bad, good)
	}
}

// adviceFor returns the links of advice for a minimal request with these members.
func (h *harness) adviceFor(t *testing.T, path, members string) string {
	t.Helper()
	body := minimal(path)
	processtest.Must(t, contracttest.Decode([]byte("{"+members+"}"), &body))
	return h.post(t, path+validateOnly, encode(t, body)).advice(t)
}

// Every link of advice leads to a place on the page, and there are at most 20 links and 2 KiB, besides a last link to the
// whole page.
func TestLinksOfAdvice(t *testing.T) {
	page := string(startParallel(t).send(t, http.MethodGet, "/advice/", nil).body)
	for _, rule := range append(advice.OAuth2Rules(), advice.WorkspaceDirectoryRules()...) {
		if strings.Count(page, ` id="`+rule.Code+`"`) != 1 || strings.ContainsFunc(rule.Detail, func(r rune) bool { return r > '~' }) {
			t.Errorf("the page has no place for %s, or its sentence is not ASCII", rule.Code)
		}
	}
	item := advice.Advice{Code: "c", Pointer: "/p", Detail: `"\`}
	one := `</a/#c>; rel="help"; anchor="#/p"; title="\"\\"`
	for count, want := range map[int]string{0: "", 1: one, 2: one + ", " + one, 21: one + `, </a/>; rel="help"`} {
		got := advice.Link(slices.Repeat([]advice.Advice{item}, count), "/a/")
		processtest.Expect(t, strings.HasSuffix(got, want), "%d: %s, want %s", count, got, want)
	}
	item.Detail = strings.Repeat("x", 1000)
	if got := advice.Link(slices.Repeat([]advice.Advice{item}, 3), "/a/"); len(got) > 2<<10+100 || strings.Count(got, "rel=") != 2 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// isOfRules reports whether links of advice have only the sentences of rules and line numbers, and so no value.
func isOfRules(links string) bool {
	for _, rule := range slices.Concat(advice.OAuth2Rules(), advice.WorkspaceDirectoryRules()) {
		links = strings.ReplaceAll(links, strings.ReplaceAll(rule.Detail, `"`, `\"`), "")
	}
	const link = `</advice/#[a-z0-9_]+>; rel="help"; anchor="#/[a-z_]+"; title="(Lines? [0-9, ]+(and [0-9]+( more)?)?: )?"`
	return regexp.MustCompile(`^(` + link + `(, |$))*(</advice/>; rel="help")?$`).MatchString(links)
}

// Every problem of the contract has a page with its title and an example, and is on the page that lists them.
func TestEveryProblemHasAPage(t *testing.T) {
	h := startParallel(t)
	document := processtest.Try(openapi3.NewLoader().LoadFromData(contract.YAML())).Must(t)
	titles := map[string]string{"/problems/not-found": "Not found", "/problems/method-not-allowed": "Method not allowed"}
	for _, example := range document.Components.Examples {
		value, _ := example.Value.Value.(map[string]any)
		if uri, ok := value["type"].(string); ok && strings.HasPrefix(uri, "/problems/") {
			titles[uri] = value["title"].(string)
		}
	}
	list := h.send(t, http.MethodGet, "/problems/", nil)
	links := regexp.MustCompile(`href="(/problems/[a-z-]+)"`).FindAllSubmatch(list.body, -1)
	processtest.Expect(t, len(titles) == 18 && len(links) == len(titles),
		"%d problems are known, and %d listed, want 18", len(titles), len(links))
	for _, link := range links {
		uri := string(link[1])
		got := h.send(t, http.MethodGet, uri, nil)
		var example model.Problem
		if json.Unmarshal(pageResponse(t, got.body), &example) != nil || example.Type != uri ||
			example.Detail == "" || example.Title != titles[uri] {
			t.Errorf("%s is %q and has no example: %s", uri, titles[uri], got.body)
		}
		processtest.Expect(t, got.status == http.StatusOK && strings.HasPrefix(got.header.Get("Content-Type"), "text/html"),
			"%s: status is %d, %s", uri, got.status, got.header.Get("Content-Type"))
	}
}
