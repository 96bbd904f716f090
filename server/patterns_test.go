package server_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/gen/api"
	"example.com/providerd/server"
)

// Each pattern that has a matcher written by hand is one of the contract, as it stands there.
func TestMatchersAreForPatternsOfTheContract(t *testing.T) {
	t.Parallel()
	contract := string(api.Contract())
	for _, pattern := range server.HandWrittenPatterns() {
		if !strings.Contains(contract, "'"+pattern+"'") {
			t.Errorf("the contract has no pattern %s", pattern)
		}
	}
}

// FuzzPatterns compares each matcher with the regular expression that it stands for.
func FuzzPatterns(f *testing.F) {
	if _, err := server.ParseContract(context.Background(), api.Contract()); err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		"", " ", "\x00", "a", "\n", "a\x00", "\u00a0", "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "3F6E1C1A-5a0f-4d3c-9a54-6b8c2f7d9e0g",
		"https://a.example.com", "https://a\r\nb:c\n", "a:b\n\nc:d", "a:b\r", "a:b\r\r\n", "JavaScript:x", "x:y\ndata:z", "data", "vb\u017fcript:x",
		"a:#", "1:a", "a+.-1:b", "a:", ":", "a:\u3000", "a:\xff", "\xff", "a:b\u2028c:d", "a:\u200b", "a:\ufffd\n",
	} {
		f.Add(text)
	}
	compiled := map[string]*regexp.Regexp{}
	for _, pattern := range server.HandWrittenPatterns() {
		compiled[pattern] = regexp.MustCompile(server.GoPattern(pattern))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for pattern, expression := range compiled {
			matcher, err := server.CompilePattern(pattern)
			if err != nil {
				t.Fatal(err)
			}
			if want := expression.MatchString(text); matcher.MatchString(text) != want {
				t.Errorf("%q matches %s: %v, want %v", text, pattern, !want, want)
			}
		}
	})
}
