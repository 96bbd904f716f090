package manifest

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer writes a manifest.
type Writer struct {
	out  io.Writer
	kind string
}

// NewWriter returns a new Writer.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Entry writes an entry: one JSON object with the member id. Entries of a kind must follow each other. Read returns the
// same strings, except those for which isReference is true. It returns an error of the JSON or of the output.
func (w *Writer) Entry(kind string, body []byte, isReference func(at jsontext.Pointer) bool) error {
	element, err := writeElement(body, func(at jsontext.Pointer, text string) string {
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

// Close completes the manifest, which must not be empty. It returns an error of the output.
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
