// Package manualtest compares the generated tables of the manual with the program, or writes them.
package manualtest

import (
	"os"
	"strings"
	"testing"
)

// UpdateVariable is the environment variable that makes Check write tables; "make manual" sets it.
const UpdateVariable = "UPDATE"

// Check fails t unless the named table of a page is the one given. In the page, the table is between the lines
// "<!-- generated: NAME -->" and "<!-- end -->". If UpdateVariable is set, Check writes the table into the page.
// Tests that check the same page must not run in parallel.
func Check(t *testing.T, page, name, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), "<!-- generated: "+name+" -->\n")
	old, after, ends := strings.Cut(rest, "<!-- end -->\n")
	if !begins || !ends {
		t.Fatalf("%s has no table %q", page, name)
	}
	table = "\n" + table + "\n"
	if old == table {
		return
	}
	if os.Getenv(UpdateVariable) == "" {
		t.Errorf("%s: table %q differs from the program; run \"make manual\". It has\n%s\nwant\n%s", page, name, old, table)
		return
	}
	before += "<!-- generated: " + name + " -->\n"
	if err := os.WriteFile(page, []byte(before+table+"<!-- end -->\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
