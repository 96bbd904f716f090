package console_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/console"
)

func TestTableEscapesWhatTerminalsObey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain \"ü\" 🔑": "plain \"ü\" 🔑", "a\tb\n": `a\tb\n`, "\x1b[31m": `\x1b[31m`, "\u202e": `\u202e`, "": "",
	} {
		if got := console.Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
