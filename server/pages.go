package server

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"

	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/contract"
)

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
	if s.problemExamples, err = problemExamples(s.contract); err != nil {
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
		problemPath + ":slug": func(c echo.Context) error { return s.explain(c, pages) },
	} {
		router.Match([]string{http.MethodGet, http.MethodHead}, path, handler)
	}
	registerDocs(router)
	return nil
}

func answerHealth(c echo.Context, code int, status string) error {
	return c.JSON(code, map[string]string{"status": status})
}

// explain answers the page that the URI of a problem leads to.
func (s *Server) explain(c echo.Context, pages *template.Template) error {
	kind, ok := s.problems[slug(c.Param("slug"))]
	if !ok {
		return echo.ErrNotFound
	}
	example, err := s.exampleOf(kind)
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
func (s *Server) exampleOf(kind problemKind) (string, error) {
	example, ok := s.problemExamples[kind.Slug]
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
