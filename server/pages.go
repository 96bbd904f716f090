package server

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
)

const (
	advicePath      = "/advice/"
	conventionsPath = "/conventions/"
	// sampleURL is the server in the samples of the contract.
	sampleURL   = "http://127.0.0.1:8080"
	pagesPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'"
)

// The templates of the pages, their style sheet and the script of their buttons.
var (
	//go:embed pages/*.html
	pageTemplates embed.FS
	//go:embed pages/pages.css
	pageStyle []byte
	//go:embed pages/pages.js
	pageScript []byte
)

// registerPages registers the paths that need no token.
func (s *Server) registerPages(router *echo.Echo, kinds []problemKind) error {
	templates, err := template.New("").Funcs(template.FuncMap{
		"markdown": renderMarkdown, "codes": s.config.Contract.CodesText, "links": links,
	}).ParseFS(pageTemplates, "pages/*.html")
	s.pages = templates
	if err != nil {
		return fmt.Errorf("parse pages: %w", err)
	}
	registerPage := func(path, name string, data any) {
		text, renderErr := render(templates, name, data)
		err = errors.Join(err, renderErr)
		registerFile(router, path, serveFile(echo.MIMETextHTMLCharsetUTF8, pagesPolicy, text))
	}
	registerPage(advicePath, "advice.html", adviceGroups())
	registerPage(conventionsPath, "conventions.html", conventions(s.config.Contract))
	registerPage(problemPath, "problems.html", kinds)
	for _, kind := range kinds {
		registerPage(kind.Type, "problem.html", kind)
	}
	registerFile(router, "/", s.home)
	registerFile(router, "/favicon.ico", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	registerFile(router, "/healthz", func(c echo.Context) error { return respondHealth(c, http.StatusOK, "ok") })
	registerFile(router, "/readyz", s.ready)
	registerFile(router, "/openapi.yaml", serveContract("application/yaml", s.config.Contract.YAML))
	registerFile(router, "/openapi.json", s.serveJSON)
	registerFile(router, "/pages.css", serveFile(styleType, pagesPolicy, pageStyle))
	registerFile(router, "/pages.js", serveFile(scriptType, pagesPolicy, pageScript))
	registerDocs(router)
	return err
}

// registerFile registers a path that can only be read. A directory is also found without the slash at its end.
func registerFile(router *echo.Echo, path string, handler echo.HandlerFunc) {
	methods := []string{http.MethodGet, http.MethodHead}
	router.Match(methods, path, handler)
	if parent, isDirectory := strings.CutSuffix(path, "/"); isDirectory && parent != "" {
		router.Match(methods, parent, func(c echo.Context) error { return c.Redirect(http.StatusMovedPermanently, path) })
	}
}

// serveContract serves the contract, which pages of any origin may read.
func serveContract(mediaType string, text []byte) echo.HandlerFunc {
	serve := serveFile(mediaType, strictPolicy, text)
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAccessControlAllowOrigin, "*")
		return serve(c)
	}
}

// serveJSON serves the contract as JSON, with the URL of this server, because some programs cannot complete a path.
func (s *Server) serveJSON(c echo.Context) error {
	server := `"servers":[{"url":"`
	absolute := bytes.Replace(s.config.Contract.JSON, []byte(server), []byte(server+origin(c)), 1)
	return serveContract(echo.MIMEApplicationJSON, absolute)(c)
}

// origin returns the scheme and host that a request was sent to.
func origin(c echo.Context) string {
	//nolint:forbidigo // Only a header has the scheme behind a proxy, and only the caller who sent it sees it.
	if c.Scheme() == "https" {
		return "https://" + c.Request().Host
	}
	return "http://" + c.Request().Host
}

// link is a link of the front page. Name is its JSON member, Title its text in a browser.
type link struct{ Name, Path, Title, About string }

func links() []link {
	return []link{
		{"reference", docsPath, "Reference", "Fields, errors, samples in curl, Go and TypeScript, and a form to try them."},
		{"problems", problemPath, "Problems", "What each refusal means and how to fix it."},
		{"advice", advicePath, "Advice", "Settings that the contract allows but best practice discourages."},
		{"conventions", conventionsPath, "Conventions", "How bodies are read, requests refused and retries handled; limits."},
		{"openapi_yaml", "/openapi.yaml", "openapi.yaml", "The contract (OpenAPI 3.0), for people and generators."},
		{"openapi_json", "/openapi.json", "openapi.json", "The same contract as JSON, with the URL of this server."},
		{"readiness", "/readyz", "Readiness", "Responds with 200 while the database can store a provider."},
		{"health", "/healthz", "Health", "Responds with 200 while the process runs."},
	}
}

type homePage struct {
	Version    string
	IsReady    bool
	Operations []*contract.Operation
	// Sample is a curl command that creates a provider on this server.
	Sample string
}

// isBrowser reports whether a person reads the response.
func isBrowser(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(r.Header.Get(echo.HeaderAccept), echo.MIMETextHTML)
}

func (s *Server) servePage(c echo.Context, status int, name string, data any) error {
	text, err := render(s.pages, name, data)
	if err != nil {
		return err
	}
	c.Response().Header().Set(contentSecurityPolicyHeader, pagesPolicy)
	return c.HTMLBlob(status, text)
}

// home serves the front page: HTML to a browser, and the links as JSON to any other program.
func (s *Server) home(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderVary, echo.HeaderAccept)
	page := homePage{Version: s.config.Version, Operations: s.config.Contract.Operations()}
	if !isBrowser(c.Request()) {
		paths := map[string]string{}
		for _, link := range links() {
			paths[link.Name] = link.Path
		}
		return c.JSON(http.StatusOK, paths)
	}
	page.IsReady = !s.isDraining.Load() && s.checkReady(c.Request().Context()) == nil
	path := page.Operations[0].Path
	// A host may have characters that a shell would interpret.
	quoted := "'" + strings.ReplaceAll(origin(c)+path, "'", `'\''`) + "'"
	page.Sample = strings.ReplaceAll(page.Operations[0].CurlSample, sampleURL+path, quoted)
	return s.servePage(c, http.StatusOK, "home.html", page)
}

// readinessTimeout is how long the database may take to report that it is ready.
const readinessTimeout = 5 * time.Second

// BeginDrain makes /readyz fail, so that load balancers send requests elsewhere. Other requests are still served.
func (s *Server) BeginDrain() { s.isDraining.Store(true) }

// checkReady returns an error unless the database can store a provider.
func (s *Server) checkReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	if err := s.config.Store.Ready(ctx); err != nil {
		return fmt.Errorf("check readiness: %w", err)
	}
	return nil
}

func (s *Server) ready(c echo.Context) error {
	if s.isDraining.Load() {
		return respondHealth(c, http.StatusServiceUnavailable, "draining")
	}
	if err := s.checkReady(c.Request().Context()); err != nil {
		return err
	}
	if s.config.Store.Stats().Database.IsContended {
		return respondHealth(c, http.StatusOK, "ready, but another program locks the database most of the time")
	}
	return respondHealth(c, http.StatusOK, "ready")
}

func respondHealth(c echo.Context, code int, status string) error {
	return c.JSON(code, map[string]string{"status": status})
}

// conventions returns the sections of the contract's description, in Markdown, without the one for generators.
func conventions(openapi *contract.Document) string {
	_, sections, _ := strings.Cut(openapi.Description, "\n## ")
	sections, _, _ = strings.Cut(sections, "\n## Code generation")
	return "## " + sections
}

type ruleGroup struct {
	Kind  string
	Rules []anchoredRule
}

// anchoredRule is a rule with the fragment that links lead to: its code, at the first rule that has it.
type anchoredRule struct {
	advice.Rule
	Anchor string
}

func adviceGroups() []ruleGroup {
	groups := []ruleGroup{{Kind: "OAuth2 providers"}, {Kind: "Workspace directory-sync providers"}}
	isAnchored := map[string]bool{}
	for i, rules := range [][]advice.Rule{advice.OAuth2Rules(), advice.WorkspaceDirectoryRules()} {
		for _, rule := range rules {
			anchored := anchoredRule{Rule: rule}
			if !isAnchored[rule.Code] {
				anchored.Anchor, isAnchored[rule.Code] = rule.Code, true
			}
			groups[i].Rules = append(groups[i].Rules, anchored)
		}
	}
	return groups
}

func renderMarkdown(text string) (template.HTML, error) {
	var rendered bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(text), &rendered); err != nil {
		return "", fmt.Errorf("render Markdown: %w", err)
	}
	return template.HTML(rendered.String()), nil //nolint:gosec // The contract is part of the program.
}

func render(templates *template.Template, name string, data any) ([]byte, error) {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name, data); err != nil {
		return nil, fmt.Errorf("render page %s: %w", name, err)
	}
	return text.Bytes(), nil
}
