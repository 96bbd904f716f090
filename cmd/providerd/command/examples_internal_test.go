package command

import (
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Each command has examples, and each of them is one that the command takes.
func TestExamplesAreCommandLines(t *testing.T) {
	t.Parallel()
	parser := newTestParser(t)
	known := map[string]bool{parser.Model.Name: true}
	for _, leaf := range parser.Model.Leaves(true) {
		known[pathOf(leaf)] = true
		if len(examples()[pathOf(leaf)]) == 0 {
			t.Errorf("%s has no example", pathOf(leaf))
		}
	}
	for command, lines := range examples() {
		if !known[command] {
			t.Errorf("there is no command %s", command)
		}
		for _, line := range lines {
			_, arguments, found := strings.Cut(line, "providerd ")
			if !found {
				t.Errorf("%q does not run providerd", line)
				continue
			}
			arguments = regexp.MustCompile(`[)>|].*`).ReplaceAllString(arguments, "")
			trace, err := kong.Trace(parser, withHelpFlag(strings.Fields(arguments)))
			if err != nil || trace.Error != nil {
				t.Errorf("%q: %v, %v", line, err, trace.Error)
				continue
			}
			if command == parser.Model.Name || command == "providerd help" {
				continue
			}
			if path := pathOf(trace.Selected()); path != strings.TrimSuffix(command, " list") && path != command {
				t.Errorf("%q is an example of %s", line, path)
			}
		}
	}
}
