package command

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/console"
)

// The manual page has every command with each of its flags, and no line that man(7) would take for a request.
func TestManualPageHasEveryFlag(t *testing.T) {
	t.Parallel()
	parser := newTestParser(t)
	var page strings.Builder
	out := console.NewOutput(&page)
	if err := errors.Join(manCommand{}.Run(parser, out), out.Flush()); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(page.String(), "\n.SS ")
	leaves := parser.Model.Leaves(true)
	if len(parts) != len(leaves)+1 {
		t.Fatalf("%d commands are explained, want %d", len(parts)-1, len(leaves))
	}
	for i, command := range leaves {
		part := parts[i+1]
		if !strings.HasPrefix(part, pathOf(command)+"\n") {
			t.Errorf("%s is explained instead of %s", strings.SplitN(part, "\n", 2)[0], command.FullPath())
		}
		for _, flag := range slices.Concat(command.Flags, parser.Model.Flags) {
			if !strings.Contains(part, " "+manText("--"+flag.Name)) {
				t.Errorf("%s: --%s is missing", command.FullPath(), flag.Name)
			}
		}
	}
	requests := []string{".TH", ".SH", ".SS", ".PP", ".nf", ".fi"}
	for line := range strings.SplitSeq(page.String(), "\n") {
		request, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, ".") && !slices.Contains(requests, request) {
			t.Errorf("%q is no request of this page", line)
		}
	}
}
