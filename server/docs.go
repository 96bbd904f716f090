package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

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
	methods := []string{http.MethodGet, http.MethodHead}
	for _, path := range docsPaths() {
		plain, packed := renderOnce(page, docsPath+path, ""), renderOnce(page, docsPath+path, gzipCoding)
		router.Match(methods, docsPath+path, func(c echo.Context) error {
			header := c.Response().Header()
			header.Set(contentSecurityPolicyHeader, policy)
			header.Set("Cache-Control", "no-cache")
			file := plain()
			if strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), gzipCoding) {
				file = packed()
			}
			maps.Copy(header, file.header)
			http.ServeContent(c.Response(), c.Request(), path, time.Time{}, bytes.NewReader(file.Bytes()))
			return nil
		})
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
	text := renderOnce(page, docsPath, "")()
	var scripts strings.Builder
	for _, match := range regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllSubmatch(text.Bytes(), -1) {
		digest := sha256.Sum256(match[1])
		fmt.Fprintf(&scripts, " 'sha256-%s'", base64.StdEncoding.EncodeToString(digest[:]))
	}
	return "default-src 'none'; script-src 'self'" + scripts.String() + "; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

const gzipCoding = "gzip"

// renderOnce returns a file of the page in a content coding. It is kept, because the page unpacks its files for each
// request, which callers without a token could use to keep the processor busy.
func renderOnce(page http.Handler, path, coding string) func() *renderedFile {
	return sync.OnceValue(func() *renderedFile {
		file := &renderedFile{header: http.Header{}}
		request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Header: http.Header{}}
		request.Header.Set(echo.HeaderAcceptEncoding, coding)
		page.ServeHTTP(file, request)
		file.header.Del(echo.HeaderContentLength)
		return file
	})
}

// renderedFile is a file of the page, with its header.
type renderedFile struct {
	bytes.Buffer
	header http.Header
}

// Header returns the header (http.ResponseWriter).
func (f *renderedFile) Header() http.Header { return f.header }

// WriteHeader does nothing: the page has no other status than 200.
func (*renderedFile) WriteHeader(int) {}
