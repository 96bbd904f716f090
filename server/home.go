package server

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

const (
	stylePath = "/pages.css"
	// pagesPolicy lets the pages load their style sheet and nothing else.
	pagesPolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'"
)

// pageFiles are the templates of the pages, and their style sheet.
//
//go:embed pages
var pageFiles embed.FS

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

// renderPage answers a page of the server's own.
func renderPage(c echo.Context, pages *template.Template, name string, data any) error {
	var text bytes.Buffer
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	c.Response().Header().Set(contentSecurityPolicyHeader, pagesPolicy)
	return c.HTMLBlob(http.StatusOK, text.Bytes())
}
