package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
)

const docsPath = "/docs/"

// registerDocs adds the reference page: Swagger UI, which the program has in it, over the contract that it serves.
func registerDocs(router *echo.Echo) {
	page := v5emb.NewHandlerWithConfig(swgui.Config{
		Title: "providerd", SwaggerJSON: "/openapi.json", BasePath: docsPath,
		SettingsUI: map[string]string{"tryItOutEnabled": "true"},
	})
	policy := docsPolicy(page)
	handler := func(c echo.Context) error {
		header := c.Response().Header()
		header.Set(contentSecurityPolicyHeader, policy)
		header.Set("Cache-Control", "no-cache")
		page.ServeHTTP(c.Response(), c.Request())
		return nil
	}
	methods := []string{http.MethodGet, http.MethodHead}
	for _, path := range docsPaths() {
		router.Match(methods, docsPath+path, handler)
	}
	router.Match(methods, strings.TrimSuffix(docsPath, "/"), func(c echo.Context) error {
		return c.Redirect(http.StatusMovedPermanently, docsPath)
	})
}

// docsPaths are the files of the page. Others are answered like any path that does not exist.
func docsPaths() []string {
	return []string{
		"", "swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js",
		"favicon-16x16.png", "favicon-32x32.png",
	}
}

// docsPolicy lets the page run its own script, named by its digest, and talk to this server alone. Swagger UI sets
// styles on its elements, which no digest can name.
func docsPolicy(page http.Handler) string {
	var text pageText
	page.ServeHTTP(&text, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: docsPath}})
	var scripts strings.Builder
	for _, match := range regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllSubmatch(text.Bytes(), -1) {
		digest := sha256.Sum256(match[1])
		fmt.Fprintf(&scripts, " 'sha256-%s'", base64.StdEncoding.EncodeToString(digest[:]))
	}
	return "default-src 'none'; script-src 'self'" + scripts.String() + "; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// pageText takes a page that is served to nobody.
type pageText struct{ bytes.Buffer }

// Header returns a header that is not kept.
func (*pageText) Header() http.Header { return http.Header{} }

// WriteHeader does nothing: the page has no other status than 200.
func (*pageText) WriteHeader(int) {}
