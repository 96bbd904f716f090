// Package manual contains the operator's manual, which the ops listener serves for the links of alerts.
package manual

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"io/fs"
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

// nothing is the page about a path that the listener does not have.
const nothing = `<h1>Not found</h1>
<p>This listener has <a href="/metrics">/metrics</a>, <a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a>,
<a href="/debug/pprof/">/debug/pprof/</a> and <a href="/manual/">/manual/</a>. The API has a listener of its own.</p>
`

// Register registers the manual, which uses the server's /pages.css and /pages.js, the files of deploy, and a 404 page.
func Register(mux *http.ServeMux) {
	framed := template.Must(template.ParseFS(pages, "frame.html"))
	show := func(w http.ResponseWriter, status int, body string, around [][]string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:")
		w.WriteHeader(status)
		//nolint:gosec // The manual is part of the program.
		_ = framed.Execute(w, map[string]any{"Body": template.HTML(body), "Around": around})
	}
	notFound := func(w http.ResponseWriter, _ *http.Request) {
		show(w, http.StatusNotFound, nothing, [][]string{nil, {"", "Not found"}, nil})
	}
	serveFile := func(w http.ResponseWriter, r *http.Request, files embed.FS) {
		name := r.PathValue("file")
		if _, err := fs.Stat(files, name); err != nil {
			notFound(w, r)
			return
		}
		if path.Ext(name) != ".svg" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		http.ServeFileFS(w, r, files, name)
	}
	mux.HandleFunc("/", notFound)
	mux.Handle("GET /{$}", http.RedirectHandler("/manual/", http.StatusFound))
	mux.HandleFunc("GET /deploy/{file}", func(w http.ResponseWriter, r *http.Request) { serveFile(w, r, deploy.Files) })
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
		show(w, http.StatusOK, body.String(), order[i-1:i+2])
	})
}
