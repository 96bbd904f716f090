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
	"slices"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"example.com/providerd/cmd/providerd/deploy"
)

// pages are the pages in Markdown, their frame, and the pictures, programs and examples beside them.
//
//go:embed *.md *.html *.svg *.mjs *.java *.sql *.txt *.json
var pages embed.FS

// Register registers the manual, whose pages use the server's /pages.css and /pages.js, and the files of deploy.
func Register(mux *http.ServeMux) {
	mux.Handle("GET /{$}", http.RedirectHandler("/manual/", http.StatusFound))
	mux.HandleFunc("GET /deploy/{file}", func(w http.ResponseWriter, r *http.Request) { serveFile(w, r, deploy.Files) })
	framed := template.Must(template.ParseFS(pages, "frame.html"))
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	text, _ := pages.ReadFile("README.md")
	listed := regexp.MustCompile(`(?m)^- \[(.+?)\]\((.+?)\)`).FindAllStringSubmatch(string(text), -1)
	// Each page has its title at 1 and its file at 2; before the first and after the last, there is none.
	order := slices.Concat([][]string{nil, {"", "Contents", "README.md"}}, listed, [][]string{nil})
	mux.HandleFunc("GET /manual/{file...}", func(w http.ResponseWriter, r *http.Request) {
		page := cmp.Or(r.PathValue("file"), "README.md")
		i := slices.IndexFunc(order, func(other []string) bool { return other != nil && other[2] == page })
		if i < 0 {
			serveFile(w, r, pages)
			return
		}
		text, err := pages.ReadFile(page)
		var body bytes.Buffer
		if err = cmp.Or(err, markdown.Convert(text, &body)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:")
		//nolint:gosec // The manual is part of the program.
		_ = framed.Execute(w, map[string]any{"Body": template.HTML(body.String()), "Around": order[i-1 : i+2]})
	})
}

// serveFile serves an embedded file, pictures aside as text.
func serveFile(w http.ResponseWriter, r *http.Request, files embed.FS) {
	if path.Ext(r.URL.Path) != ".svg" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	http.ServeFileFS(w, r, files, r.PathValue("file")) //nolint:gosec // Only embedded files can be read.
}
