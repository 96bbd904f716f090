//go:build slow

package leaks_test

import (
	"bytes"
	"crypto/sha256"
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
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// scanner searches for canaries in what leaves the program or reaches the disk.
type scanner struct {
	// traces are the plain and encoded forms of canaries by name.
	traces map[string][][]byte
	// places counts what was scanned, and leaks are the canaries found, with their places.
	places int
	leaks  []string
	// missed are the places that the search did not reach.
	missed []string
}

func newScanner() *scanner { return &scanner{traces: map[string][][]byte{}} }

// canary adds a text that must not occur anywhere.
func (s *scanner) canary(name, text string) {
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

// digestCanary adds the plain SHA-256 digest of a text, with which the text could be guessed.
func (s *scanner) digestCanary(name, text string) {
	digest := sha256.Sum256([]byte(text))
	s.canary(name, string(digest[:]))
}

// scan searches a place for canaries, except those whose names have a prefix in allowed.
func (s *scanner) scan(place string, content []byte, allowed ...string) {
	s.places++
	for name, traces := range s.traces {
		if slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		for _, trace := range traces {
			if bytes.Contains(content, trace) {
				s.leaks = append(s.leaks, fmt.Sprintf("%s is in %s", name, place))
				break
			}
		}
	}
}

// scanFiles scans the files below a directory and their names. The token file may hold its token, and the keyset file
// master keys.
func (s *scanner) scanFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var allowed []string
		switch entry.Name() {
		case "initial-token":
			allowed = []string{"initial token"}
		case "keyset.json":
			allowed = []string{"master key "}
		}
		s.scan("the file "+entry.Name(), append(content, path...), allowed...)
		return nil
	})
	processtest.Must(t, err)
}
