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

	"example.com/providerd/gen/api"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
)

const (
	advicePath = "/advice/"
	stylePath  = "/pages.css"
	// pagesPolicy lets the pages load their style sheet and nothing else.
	pagesPolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'"
)

// pageFiles are the templates of the pages, and their style sheet.
//
//go:embed pages
var pageFiles embed.FS

// registerPages adds the paths that need no token: the front page, health, the contract and the pages of the problems.
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
	for path, handler := range map[string]echo.HandlerFunc{
		"/":        func(c echo.Context) error { return s.greet(c, pages) },
		stylePath:  func(c echo.Context) error { return c.Blob(http.StatusOK, "text/css; charset=utf-8", style) },
		"/healthz": func(c echo.Context) error { return answerHealth(c, http.StatusOK, "ok") },
		"/readyz":  s.ready,
		"/openapi.yaml": func(c echo.Context) error {
			return c.Blob(http.StatusOK, "application/yaml", s.contract.YAML)
		},
		"/openapi.json":       func(c echo.Context) error { return c.JSONBlob(http.StatusOK, s.contract.JSON) },
		advicePath:            func(c echo.Context) error { return listAdvice(c, pages) },
		problemPath:           func(c echo.Context) error { return renderPage(c, pages, "problems.html", problemKinds()) },
		problemPath + ":slug": func(c echo.Context) error { return s.explain(c, pages, examples) },
	} {
		router.Match([]string{http.MethodGet, http.MethodHead}, path, handler)
	}
	registerDocs(router)
	return nil
}

// link leads from the front page to what is served without a token.
type link struct {
	// Name is the member of the answer to a program, Title the text of the link in a browser.
	Name, Path, Title, About string
}

func links() []link {
	return []link{
		{
			"reference", docsPath, "Reference",
			"Every field and error, samples in curl, Go and TypeScript, and a form to try them.",
		},
		{"problems", problemPath, "Problems", "What each refusal means, and how to fix it."},
		{"advice", advicePath, "Advice", "What the contract allows, but a standard advises against."},
		{"openapi_yaml", "/openapi.yaml", "openapi.yaml", "The contract (OpenAPI 3.0), for people and generators."},
		{"openapi_json", "/openapi.json", "openapi.json", "The same contract as JSON."},
		{"health", "/healthz", "Health", "Answers while the process lives."},
		{"readiness", "/readyz", "Readiness", "Answers while the database can store a provider."},
	}
}

// homePage is what the front page shows.
type homePage struct {
	Operations []homeOperation
	Links      []link
}

type homeOperation struct{ Method, Path, Summary string }

// greet answers the front page: links, as HTML to a browser and as JSON to any other program.
func (s *Server) greet(c echo.Context, pages *template.Template) error {
	c.Response().Header().Set(echo.HeaderVary, echo.HeaderAccept)
	home := homePage{Links: links()}
	if !strings.Contains(c.Request().Header.Get(echo.HeaderAccept), echo.MIMETextHTML) {
		paths := map[string]string{}
		for _, link := range home.Links {
			paths[link.Name] = link.Path
		}
		return c.JSON(http.StatusOK, paths)
	}
	for _, op := range s.contract.Operations() {
		home.Operations = append(home.Operations, homeOperation{
			Method: op.Method, Path: op.Path, Summary: op.Summary,
		})
	}
	return renderPage(c, pages, "home.html", home)
}

// ruleGroup is the rules of advice on one kind of provider.
type ruleGroup struct {
	Kind  string
	Rules []advice.Rule
}

// listAdvice answers the page that lists the rules of advice.
func listAdvice(c echo.Context, pages *template.Template) error {
	return renderPage(c, pages, "advice.html", []ruleGroup{
		{"OAuth2 provider", advice.OAuth2Rules()},
		{"Workspace directory-sync provider", advice.WorkspaceDirectoryRules()},
	})
}

// explain answers the page that the URI of a problem leads to.
func (s *Server) explain(c echo.Context, pages *template.Template, examples map[slug]api.Problem) error {
	kind, ok := s.problems[slug(c.Param("slug"))]
	if !ok {
		return echo.ErrNotFound
	}
	example, err := exampleOf(kind, examples)
	if err != nil {
		return err
	}
	return renderPage(c, pages, "problem.html", problemPageData{problemKind: kind, Example: example})
}

// problemPageData is what the page of a problem shows.
type problemPageData struct {
	problemKind
	// Example is an answer in JSON.
	Example string
}

// exampleOf takes the example of the contract, which has none for what no operation answers.
func exampleOf(kind problemKind, examples map[slug]api.Problem) (string, error) {
	example, ok := examples[kind.Slug]
	if !ok {
		example = api.Problem{
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

// problemExamples reads the examples of the answers other than success.
func problemExamples(openapi *contract.Document) (map[slug]api.Problem, error) {
	texts, err := openapi.Examples(problemMediaType)
	if err != nil {
		return nil, fmt.Errorf("read examples of problems: %w", err)
	}
	examples := map[slug]api.Problem{}
	for kind, text := range texts {
		var problem api.Problem
		if err := json.Unmarshal(text, &problem); err != nil {
			return nil, fmt.Errorf("read example of %s: %w", kind, err)
		}
		examples[slug(kind)] = problem
	}
	return examples, nil
}

// renderPage answers a page of the server's own.
func renderPage(c echo.Context, pages *template.Template, name string, data any) error {
	var text bytes.Buffer
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	c.Response().Header().Set(contentSecurityPolicyHeader, pagesPolicy)
	return c.HTMLBlob(http.StatusOK, text.Bytes())
}
