// Package manual contains the operator's manual, which the ops listener serves for the links of alerts.
package manual

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"path"
	"regexp"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// pages are the pages of the manual in Markdown, and the programs and examples beside them.
//
//go:embed *.md *.mjs *.java *.sql *.txt *.json
var pages embed.FS

const frame = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The providerd manual</title>
<link rel="stylesheet" href="/pages.css">
</head>
<body>
<nav><a href="/manual/">The providerd manual</a></nav>
{{.}}</body>
</html>
`

// Handler returns a new handler that serves a page as HTML, or another file as text. The value "page" of the path is
// its file name, which is README.md by default. The style sheet is the server's /pages.css.
func Handler() http.Handler {
	framed := template.Must(template.New("").Parse(frame))
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	// Links to other files of the repository, which are not served, become text.
	outside := regexp.MustCompile(`!?\[([^\]]*)\]\(\.\.[^)]*\)`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := cmp.Or(r.PathValue("page"), "README.md")
		text, err := pages.ReadFile(page)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		if path.Ext(page) != ".md" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			http.ServeFileFS(w, r, pages, page) //nolint:gosec // Only embedded files can be read.
			return
		}
		var body bytes.Buffer
		if err := markdown.Convert(outside.ReplaceAll(text, []byte("$1")), &body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:")
		_ = framed.Execute(w, template.HTML(body.String())) //nolint:gosec // The manual is part of the program.
	})
}
