package server

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"example.com/providerd/gen/api"
)

//go:embed problem.html
var problemPage string

// registerPages adds the paths that need no token: health, the contract and the pages of the problems.
func (s *Server) registerPages(router *echo.Echo) error {
	page, err := template.New("problem").Parse(problemPage)
	if err != nil {
		return fmt.Errorf("parse problem page: %w", err)
	}
	if s.problemExamples, err = problemExamples(s.contract.document); err != nil {
		return err
	}
	for path, handler := range map[string]echo.HandlerFunc{
		"/healthz": func(c echo.Context) error { return c.JSON(http.StatusOK, map[string]string{"status": "ok"}) },
		"/readyz":  s.ready,
		"/openapi.yaml": func(c echo.Context) error {
			return c.Blob(http.StatusOK, "application/yaml", s.contract.yaml)
		},
		"/openapi.json":       func(c echo.Context) error { return c.JSONBlob(http.StatusOK, s.contract.json) },
		problemPath + ":slug": func(c echo.Context) error { return s.explain(c, page) },
	} {
		router.Match([]string{http.MethodGet, http.MethodHead}, path, handler)
	}
	registerDocs(router)
	return nil
}

// ready asks the database, because a server without it can do nothing.
func (s *Server) ready(c echo.Context) error {
	if err := s.store.Ready(c.Request().Context()); err != nil {
		return fmt.Errorf("check readiness: %w", err)
	}
	return c.JSON(http.StatusOK, map[string]string{"status": "ready"})
}

// explain answers the page that the URI of a problem leads to.
func (s *Server) explain(c echo.Context, page *template.Template) error {
	kind, ok := s.problems[slug(c.Param("slug"))]
	if !ok {
		return echo.ErrNotFound
	}
	example, err := s.exampleOf(kind)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := page.Execute(&text, problemPageData{problemKind: kind, Example: example}); err != nil {
		return fmt.Errorf("render problem page: %w", err)
	}
	return c.HTMLBlob(http.StatusOK, text.Bytes())
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
func problemExamples(document *openapi3.T) (map[slug]api.Problem, error) {
	examples := map[slug]api.Problem{}
	for name, response := range document.Components.Responses {
		media := response.Value.Content[problemMediaType]
		if media == nil {
			continue
		}
		for kind, example := range media.Examples {
			text, err := json.Marshal(example.Value.Value)
			if err != nil {
				return nil, fmt.Errorf("render example %s of response %s: %w", kind, name, err)
			}
			var problem api.Problem
			if err := json.Unmarshal(text, &problem); err != nil {
				return nil, fmt.Errorf("read example %s of response %s: %w", kind, name, err)
			}
			examples[slug(kind)] = problem
		}
	}
	return examples, nil
}
