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
		file, err := findReferenceFile(name)
		if err != nil {
			return err
		}
		router.Match(methods, docsPath+served, file.serve)
	}
	router.Match(methods, strings.TrimSuffix(docsPath, "/"), func(c echo.Context) error {
		return c.Redirect(http.StatusMovedPermanently, docsPath)
	})
	return nil
}

// referenceFile is a file of the reference page. It is read where it is in the program: a copy would take memory for as
// long as that runs.
type referenceFile struct {
	// name is that of the file as it is sent, unpacked.
	name     string
	content  io.ReaderAt
	size     int64
	isPacked bool
	// tag tells this version from others.
	tag func() (string, error)
	// unpacked is the content for callers that do not take gzip, unpacked once: callers without a token could otherwise
	// keep the processor busy.
	unpacked func() ([]byte, error)
}

func findReferenceFile(name string) (*referenceFile, error) {
	opened, err := referenceFiles.Open(path.Join("reference", name))
	if err != nil {
		return nil, fmt.Errorf("open file of the reference page: %w", err)
	}
	about, err := opened.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at file of the reference page: %w", err)
	}
	content, isReaderAt := opened.(io.ReaderAt)
	if !isReaderAt {
		return nil, fmt.Errorf("%s of the reference page is no file", name)
	}
	file := &referenceFile{content: content, size: about.Size()}
	file.name, file.isPacked = strings.CutSuffix(name, ".gz")
	file.tag = sync.OnceValues(file.digest)
	file.unpacked = sync.OnceValues(file.unpack)
	return file, nil
}

// serve answers the file, packed for callers that take gzip.
func (f *referenceFile) serve(c echo.Context) error {
	tag, err := f.tag()
	if err != nil {
		return err
	}
	header, answer := c.Response().Header(), f.reader()
	switch takesGzip := strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), gzipCoding); {
	case f.isPacked && takesGzip:
		header.Set(echo.HeaderContentEncoding, gzipCoding)
		tag += "-" + gzipCoding
	case f.isPacked:
		unpacked, err := f.unpacked()
		if err != nil {
			return err
		}
		answer = bytes.NewReader(unpacked)
	}
	header.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	header.Set(contentSecurityPolicyHeader, docsPolicy)
	header.Set(echo.HeaderCacheControl, "no-cache")
	header.Set("ETag", `"`+tag+`"`)
	http.ServeContent(c.Response(), c.Request(), f.name, time.Time{}, answer)
	return nil
}

func (f *referenceFile) reader() io.ReadSeeker { return io.NewSectionReader(f.content, 0, f.size) }

func (f *referenceFile) digest() (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, f.reader()); err != nil {
		return "", fmt.Errorf("read %s of the reference page: %w", f.name, err)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

func (f *referenceFile) unpack() ([]byte, error) {
	reader, err := gzip.NewReader(f.reader())
	if err != nil {
		return nil, fmt.Errorf("unpack %s of the reference page: %w", f.name, err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpack %s of the reference page: %w", f.name, err)
	}
	return content, nil
}
