package console

import (
	"strings"
	"testing"
)

// TestTablesFitTheTerminal checks that cells are shortened or wrapped only if a terminal is too narrow.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit int
		want  string
	}{
		{0, "ID  TIME                  NAME          TEXT\n" +
			"1   2026-01-31T08:00:00Z  Twelve chars  one two three four five six seven eight\n"},
		{75, "ID  TIME                  NAME          TEXT\n" +
			"1   2026-01-31T08:00:00Z  Twelve chars  one two three four five six seven\n" +
			"                                        eight\n"},
		{60, "ID  TIME        NAME          TEXT\n" +
			"1   2026-01-31  Twelve chars  one two three four five six\n" +
			"                              seven eight\n"},
	} {
		var printed strings.Builder
		list := NewTable(NewOutput(&printed), "ID", "EMPTY", "TIME", "NAME", "TEXT")
		list.limit = test.limit
		list.Row("1", "", "2026-01-31T08:00:00Z", "Twelve chars", "one two three four five six seven eight")
		if err := list.Flush(); err != nil || printed.String() != test.want {
			t.Errorf("at width %d, the table is\n%s%v", test.limit, printed.String(), err)
		}
	}
}
