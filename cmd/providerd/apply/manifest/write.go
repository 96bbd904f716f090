package manifest

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/cmd/providerd/yamltext"
)

// Writer writes a manifest, which Read reads.
type Writer struct {
	out  io.Writer
	kind string
}

// NewWriter begins a manifest.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Entry writes an entry: one JSON object, with the id as its member. Entries of a kind must follow each other. Its
// strings come back as they are, but for those at the places that are references. It returns an error of the JSON or of
// the output.
func (w *Writer) Entry(kind string, body []byte, isReference func(at jsontext.Pointer) bool) error {
	element, err := yamltext.Element(body, func(at jsontext.Pointer, text string) string {
		if isReference(at) {
			return text
		}
		return strings.ReplaceAll(text, "${", "$${")
	})
	if err != nil {
		return fmt.Errorf("write entry: %w", err)
	}
	if kind != w.kind {
		w.kind = kind
		element = append([]byte(kind+":\n"), element...)
	}
	return w.write(element)
}

// Close writes what a manifest without entries must have. It returns an error of the output.
func (w *Writer) Close(kind string) error {
	if w.kind != "" {
		return nil
	}
	return w.write([]byte(kind + ": []\n"))
}

func (w *Writer) write(text []byte) error {
	if _, err := w.out.Write(text); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}
