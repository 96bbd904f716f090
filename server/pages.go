package server

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/yuin/goldmark"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
)

const (
	advicePath      = "/advice/"
	conventionsPath = "/conventions/"
	stylePath       = "/pages.css"
	// sampleURL is the server in the samples of the contract.
	sampleURL = "http://127.0.0.1:8080"
	// pagesPolicy lets the pages load only their style sheet.
	pagesPolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'"
)

// pageFiles holds the templates of the pages and their style sheet.
//
//go:embed pages
var pageFiles embed.FS

// registerPages registers the paths that need no token.
func (s *Server) registerPages(router *echo.Echo) error {
	pages, err := template.ParseFS(pageFiles, "pages/*.html")
	if err != nil {
		return fmt.Errorf("parse pages: %w", err)
	}
	style, err := pageFiles.ReadFile("pages/pages.css")
	if err != nil {
		return fmt.Errorf("read style sheet: %w", err)
	}
	examples, err := problemExamples(s.contract)
	if err != nil {
		return err
	}
	conventions, err := newConventionsPage(s.contract)
	if err != nil {
		return err
	}
	for path, handler := range map[string]echo.HandlerFunc{
		"/":                   func(c echo.Context) error { return s.home(c, pages) },
		stylePath:             func(c echo.Context) error { return c.Blob(http.StatusOK, "text/css; charset=utf-8", style) },
		"/healthz":            func(c echo.Context) error { return respondHealth(c, http.StatusOK, "ok") },
		"/readyz":             s.ready,
		"/openapi.yaml":       serveContract("application/yaml", s.contract.YAML),
		"/openapi.json":       serveContract(echo.MIMEApplicationJSON, s.contract.JSON),
		advicePath:            func(c echo.Context) error { return listAdvice(c, pages) },
		conventionsPath:       func(c echo.Context) error { return renderPage(c, pages, "conventions.html", conventions) },
		problemPath:           func(c echo.Context) error { return renderPage(c, pages, "problems.html", problemKinds()) },
		problemPath + ":slug": func(c echo.Context) error { return s.explain(c, pages, examples) },
	} {
		router.Match([]string{http.MethodGet, http.MethodHead}, path, handler)
	}
	registerDocs(router)
	return nil
}

// serveContract serves the contract, which pages of any origin may read.
func serveContract(mediaType string, text []byte) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAccessControlAllowOrigin, "*")
		return c.Blob(http.StatusOK, mediaType, text)
	}
}

// link is a link of the front page.
type link struct {
	// Name is the JSON member, Title the text of the link in a browser.
	Name, Path, Title, About string
}

func links() []link {
	return []link{
		{
			"reference", docsPath, "Reference",
			"Every field and error, samples in curl, Go and TypeScript, and a form to try them.",
		},
		{"problems", problemPath, "Problems", "What each refusal means and how to fix it."},
		{"advice", advicePath, "Advice", "Settings that the contract allows but a standard advises against."},
		{
			"conventions", conventionsPath, "Conventions",
			"How bodies are read, requests refused and retries handled, and what the limits are.",
		},
		{"openapi_yaml", "/openapi.yaml", "openapi.yaml", "The contract (OpenAPI 3.0), for people and generators."},
		{"openapi_json", "/openapi.json", "openapi.json", "The same contract as JSON."},
		{"readiness", "/readyz", "Readiness", "Responds with 200 while the database can store a provider."},
		{"health", "/healthz", "Health", "Responds with 200 while the process runs."},
	}
}

// homePage is the data of the front page.
type homePage struct {
	Version    string
	IsReady    bool
	Operations []*contract.Operation
	// Sample is a curl command that creates a provider on this server.
	Sample string
	Links  []link
}

// home serves the front page: HTML to a browser, and the links as JSON to any other program.
func (s *Server) home(c echo.Context, pages *template.Template) error {
	c.Response().Header().Set(echo.HeaderVary, echo.HeaderAccept)
	page := homePage{Version: s.version, Operations: s.contract.Operations(), Links: links()}
	if !strings.Contains(c.Request().Header.Get(echo.HeaderAccept), echo.MIMETextHTML) {
		paths := map[string]string{}
		for _, link := range page.Links {
			paths[link.Name] = link.Path
		}
		return c.JSON(http.StatusOK, paths)
	}
	page.IsReady = !s.isDraining.Load() && s.checkReady(c.Request().Context()) == nil
	//nolint:forbidigo // Only a header has the scheme behind a proxy, and only the caller who sent it sees it.
	page.Sample = strings.ReplaceAll(page.Operations[0].CurlSample, sampleURL, c.Scheme()+"://"+c.Request().Host)
	return renderPage(c, pages, "home.html", page)
}

// newConventionsPage renders the sections of the contract's description, which is Markdown.
func newConventionsPage(openapi *contract.Document) (template.HTML, error) {
	_, conventions, _ := strings.Cut(openapi.Description, "\n## ")
	var page bytes.Buffer
	if err := goldmark.Convert([]byte("## "+conventions), &page); err != nil {
		return "", fmt.Errorf("render conventions: %w", err)
	}
	return template.HTML(page.String()), nil //nolint:gosec // The contract is part of the program.
}

// ruleGroup holds the rules for one kind of provider.
type ruleGroup struct {
	Kind  string
	Rules []anchoredRule
}

// anchoredRule is a rule with the fragment that links lead to: its code, at the first rule that has it.
type anchoredRule struct {
	advice.Rule
	Anchor string
}

// listAdvice serves the page that lists the rules of advice.
func listAdvice(c echo.Context, pages *template.Template) error {
	groups := []ruleGroup{{Kind: "OAuth2 providers"}, {Kind: "Workspace directory-sync providers"}}
	isAnchored := map[string]bool{}
	for i, rules := range [][]advice.Rule{advice.OAuth2Rules(), advice.WorkspaceDirectoryRules()} {
		for _, rule := range rules {
			anchored := anchoredRule{Rule: rule, Anchor: rule.Code}
			if isAnchored[rule.Code] {
				anchored.Anchor = ""
			}
			isAnchored[rule.Code] = true
			groups[i].Rules = append(groups[i].Rules, anchored)
		}
	}
	return renderPage(c, pages, "advice.html", groups)
}

// explain serves the page at the URI of a problem.
func (s *Server) explain(c echo.Context, pages *template.Template, examples map[slug]model.Problem) error {
	kind, ok := s.problems[slug(c.Param("slug"))]
	if !ok {
		return echo.ErrNotFound
	}
	example, err := exampleOf(kind, examples)
	if err != nil {
		return err
	}
	return renderPage(c, pages, "problem.html", problemPageData{problemKind: kind, Response: example})
}

// problemPageData is the data of the page of a problem.
type problemPageData struct {
	problemKind
	// Response is an example, in JSON.
	Response string
}

// exampleOf returns the example of a problem in JSON. The contract has none for problems that no operation returns.
func exampleOf(kind problemKind, examples map[slug]model.Problem) (string, error) {
	example, ok := examples[kind.Slug]
	if !ok {
		example = model.Problem{
			Type: problemPath + string(kind.Slug), Title: kind.Title, Status: kind.Status, Detail: kind.Detail,
			RequestID: "3NQ5ZB7WLGVQ6RQH2M4XK7JYTA",
		}
	}
	text, err := json.MarshalIndent(example, "", "  ")
	if err != nil {
		return "", fmt.Errorf("render example of %s: %w", kind.Slug, err)
	}
	return string(text), nil
}

// problemExamples returns the examples of problems in the contract.
func problemExamples(openapi *contract.Document) (map[slug]model.Problem, error) {
	texts, err := openapi.Examples(problemMediaType)
	if err != nil {
		return nil, fmt.Errorf("read examples of problems: %w", err)
	}
	examples := map[slug]model.Problem{}
	for kind, text := range texts {
		var problem model.Problem
		if err := json.Unmarshal(text, &problem); err != nil {
			return nil, fmt.Errorf("read example of %s: %w", kind, err)
		}
		examples[slug(kind)] = problem
	}
	return examples, nil
}

// renderPage serves a page.
func renderPage(c echo.Context, pages *template.Template, name string, data any) error {
	var text bytes.Buffer
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	c.Response().Header().Set(contentSecurityPolicyHeader, pagesPolicy)
	return c.HTMLBlob(http.StatusOK, text.Bytes())
}
