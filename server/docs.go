package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // For the files of the reference page.
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	docsPath = "/docs/"
	// docsPolicy lets the page run its own scripts, connect here, and set style attributes, which no hash can allow.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	gzipCoding            = "gzip"
	styleType, scriptType = "text/css; charset=utf-8", "text/javascript; charset=utf-8"
)

// The files of the reference page. Scalar's script is compressed.
var (
	//go:embed reference/index.html
	referencePage []byte
	//go:embed reference/reference.css
	referenceStyle []byte
	//go:embed reference/reference.js
	referenceScript []byte
	//go:embed reference/scalar.js.gz
	scalarGzip []byte
)

// registerDocs registers the reference page, on which Scalar shows the contract.
func registerDocs(router *echo.Echo) {
	registerFile(router, docsPath, serveFile(echo.MIMETextHTMLCharsetUTF8, docsPolicy, referencePage))
	registerFile(router, docsPath+"reference.css", serveFile(styleType, docsPolicy, referenceStyle))
	registerFile(router, docsPath+"reference.js", serveFile(scriptType, docsPolicy, referenceScript))
	registerFile(router, docsPath+"scalar.js", serveGzip(scriptType, scalarGzip))
}

func serveFile(mediaType, policy string, content []byte) echo.HandlerFunc {
	digest := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(digest[:8]) + `"`
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set(echo.HeaderContentType, mediaType)
		header.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
		header.Set(contentSecurityPolicyHeader, policy)
		header.Set(echo.HeaderCacheControl, "no-cache")
		header.Set("ETag", tag)
		http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(content))
		return nil
	}
}

// serveGzip serves a compressed file unchanged to clients that accept gzip. For others, it decompresses the file
// once, so that callers without a token cannot keep the processor busy.
func serveGzip(mediaType string, content []byte) echo.HandlerFunc {
	compressed := serveFile(mediaType, docsPolicy, content)
	decompressed := sync.OnceValues(func() (echo.HandlerFunc, error) {
		var plain []byte
		reader, err := gzip.NewReader(bytes.NewReader(content))
		if err == nil {
			plain, err = io.ReadAll(reader)
		}
		if err != nil {
			return nil, fmt.Errorf("decompress the script of the reference page: %w", err)
		}
		return serveFile(mediaType, docsPolicy, plain), nil
	})
	return func(c echo.Context) error {
		if acceptsGzip(c.Request().Header.Get(echo.HeaderAcceptEncoding)) {
			c.Response().Header().Set(echo.HeaderContentEncoding, gzipCoding)
			return compressed(c)
		}
		serve, err := decompressed()
		if err != nil {
			return err
		}
		return serve(c)
	}
}

// acceptsGzip reads the header Accept-Encoding (RFC 9110 section 12.5.3).
func acceptsGzip(header string) bool {
	for element := range strings.SplitSeq(header, ",") {
		// A coding has the form of a media type without a subtype.
		coding, parameters, err := mime.ParseMediaType(element)
		if err == nil && coding == gzipCoding {
			weight, ok := parseWeight(parameters)
			return ok && weight > 0
		}
	}
	return false
}
