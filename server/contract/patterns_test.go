//go:build slow

package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"example.com/providerd/server/contract/pattern"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestPatternsMeanTheSame compares the verdicts of the engines that are installed (RE2, ECMA 262 with and without the
// flag u, Python and Java), and of the server's automata, on every pattern of the contract, for every code point of the
// Basic Multilingual Plane in several places. In Python and Java, $ matches before a final line end, too, which the
// contract says.
func TestPatternsMeanTheSame(t *testing.T) {
	t.Parallel()
	patterns, texts, compile := contracttest.Patterns(t), textsOfThePlane(), pattern.Compiler()
	want := make([]string, len(patterns))
	for i, expression := range patterns {
		compiled, verdicts := regexp.MustCompile(expression), make([]byte, len(texts))
		own := processtest.Try(compile(expression)).Must(t)
		for j, text := range texts {
			verdicts[j] = '0'
			if compiled.MatchString(text) {
				verdicts[j] = '1'
			}
			if own.MatchString(text) != compiled.MatchString(text) {
				t.Fatalf("%s: %q: %c by regexp only", expression, text, verdicts[j])
			}
		}
		want[i] = string(verdicts)
	}
	given := processtest.Try(json.Marshal(map[string]any{"patterns": patterns, "texts": texts})).Must(t)
	for _, engine := range []struct {
		name    string
		command []string
		input   []byte
		// lineEnds are the characters at the end of a text before which $ matches, too.
		lineEnds string
	}{
		{"node", []string{"node", "testdata/patterns.js"}, given, ""},
		{"python", []string{"python3", "testdata/patterns.py"}, given, "\n"},
		{"java", []string{"java", "testdata/Patterns.java"}, inHexadecimal(patterns, texts), "\n\r\u0085\u2028\u2029"},
	} {
		t.Run(engine.command[0], func(t *testing.T) {
			t.Parallel()
			processtest.NeedPrograms(t, engine.name, engine.command[0])
			command := exec.CommandContext(t.Context(), engine.command[0], engine.command[1:]...)
			command.Stdin = bytes.NewReader(engine.input)
			output, err := command.CombinedOutput()
			processtest.Require(t, err == nil, "%v: %s", err, output)
			lines := strings.Fields(string(output))
			processtest.Require(t, len(lines) != 0 && len(lines)%len(patterns) == 0, "%d lines", len(lines))
			for i, verdicts := range lines {
				pattern := i % len(patterns)
				processtest.Require(t, len(verdicts) == len(texts), "%s: %d verdicts", patterns[pattern], len(verdicts))
				for j, text := range texts {
					if verdicts[j] != want[pattern][j] && strings.TrimRight(text, engine.lineEnds) == text {
						t.Fatalf("%s: %q: %c instead of %c", patterns[pattern], text, verdicts[j], want[pattern][j])
					}
				}
			}
		})
	}
}

// textsOfThePlane returns texts with each code point of the Basic Multilingual Plane.
func textsOfThePlane() (texts []string) {
	for point := rune(0); point <= 0xFFFF; point++ {
		if !utf16.IsSurrogate(point) {
			for _, frame := range []string{"%c", "a%c", "%ca", "https://a.example/%c", "a:b\n%c:d"} {
				texts = append(texts, fmt.Sprintf(frame, point))
			}
		}
	}
	return texts
}

// inHexadecimal returns patterns, an empty line and texts, one per line in hexadecimal UTF-16.
func inHexadecimal(patterns, texts []string) []byte {
	var lines bytes.Buffer
	for _, text := range slices.Concat(patterns, []string{""}, texts) {
		for _, unit := range utf16.Encode([]rune(text)) {
			fmt.Fprintf(&lines, "%04x", unit)
		}
		lines.WriteByte('\n')
	}
	return lines.Bytes()
}
