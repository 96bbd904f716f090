package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	docsPath = "/docs/"
	// docsPolicy lets the page run its own scripts and talk to this server alone. Scalar sets styles on its elements,
	// which neither a digest nor a nonce can name.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	gzipCoding = "gzip"
)

// referenceFiles are the files of the reference page, Scalar's script packed.
//
//go:embed reference/index.html reference/reference.css reference/reference.js reference/scalar.js.gz
var referenceFiles embed.FS

// registerDocs adds the reference page: Scalar, which the program has in it, over the contract that it serves.
func registerDocs(router *echo.Echo) error {
	methods := []string{http.MethodGet, http.MethodHead}
	for served, name := range map[string]string{
		"": "index.html", "reference.css": "reference.css", "reference.js": "reference.js", "scalar.js": "scalar.js.gz",
	} {
		content, err := referenceFiles.ReadFile(path.Join("reference", name))
		if err != nil {
			return fmt.Errorf("read file of the reference page: %w", err)
		}
		router.Match(methods, docsPath+served, serveFile(name, content))
	}
	router.Match(methods, strings.TrimSuffix(docsPath, "/"), func(c echo.Context) error {
		return c.Redirect(http.StatusMovedPermanently, docsPath)
	})
	return nil
}

// serveFile answers a file of the reference page. A packed one is unpacked for callers that do not take gzip: once,
// because callers without a token could otherwise keep the processor busy.
func serveFile(name string, content []byte) echo.HandlerFunc {
	unpackedName, isPacked := strings.CutSuffix(name, ".gz")
	unpacked := sync.OnceValues(func() ([]byte, error) { return unpack(content) })
	digest := sha256.Sum256(content)
	tag := hex.EncodeToString(digest[:8])
	return func(c echo.Context) error {
		header, answer, tag := c.Response().Header(), content, tag
		switch takesGzip := strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), gzipCoding); {
		case isPacked && takesGzip:
			header.Set(echo.HeaderContentEncoding, gzipCoding)
			tag += "-" + gzipCoding
		case isPacked:
			var err error
			if answer, err = unpacked(); err != nil {
				return err
			}
		}
		header.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
		header.Set(contentSecurityPolicyHeader, docsPolicy)
		header.Set(echo.HeaderCacheControl, "no-cache")
		header.Set("ETag", `"`+tag+`"`)
		http.ServeContent(c.Response(), c.Request(), unpackedName, time.Time{}, bytes.NewReader(answer))
		return nil
	}
}

func unpack(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack script: %w", err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpack script: %w", err)
	}
	return content, nil
}
