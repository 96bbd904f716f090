//go:build slow

package leaks_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/providerd/store/storetest/processtest"
)

// canary adds a text that must not occur anywhere.
func (s *search) canary(name, text string) {
	quoted, _ := json.Marshal(text)
	traces := []string{
		text, strings.Trim(string(quoted), `"`), url.QueryEscape(text), hex.EncodeToString([]byte(text)),
		strings.ToUpper(hex.EncodeToString([]byte(text))), strings.Trim(fmt.Sprintf("%d", []byte(text)), "[]"),
	}
	// The base64 encoding depends on the offset, and its first and last characters on the neighboring bytes.
	for offset := range 3 {
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, offset), text...))
		inner := strings.TrimRight(encoded, "=")[(offset*8+5)/6 : (offset+len(text))*8/6]
		traces = append(traces, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	for _, trace := range traces {
		if !slices.ContainsFunc(s.traces[name], func(known []byte) bool { return string(known) == trace }) {
			s.traces[name] = append(s.traces[name], []byte(trace))
		}
	}
}

// scan searches a place for canaries, except those whose names have a prefix in allowed.
func (s *search) scan(place string, content []byte, allowed ...string) {
	s.places++
	for name, traces := range s.traces {
		isAllowed := slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !isAllowed && slices.ContainsFunc(traces, func(trace []byte) bool { return bytes.Contains(content, trace) }) {
			s.leaks = append(s.leaks, fmt.Sprintf("%s is in %s", name, place))
		}
	}
}

// scanFiles scans the files below a directory and their names. The token file may hold its token, and the keyset file
// master keys.
func (s *search) scanFiles(dir string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		allowed := map[string][]string{"initial-token": {"initial token"}, "keyset.json": {"master key "}}
		s.scan("the file "+entry.Name(), append(content, path...), allowed[entry.Name()]...)
		return nil
	})
	processtest.Must(s.t, err)
}
