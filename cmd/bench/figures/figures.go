// Package figures writes what was measured: charts in SVG, and text into a README.
package figures

import (
	"fmt"
	"os"
	"strings"
)

// Put replaces the figures in a README between the comment with this title and "<!-- end of figures -->".
func Put(path, title, text string) error {
	begin, end := "<!-- "+title+" -->\n", "<!-- end of figures -->\n"
	readme, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read README: %w", err)
	}
	before, rest, begins := strings.Cut(string(readme), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for %q", path, title)
	}
	if err := os.WriteFile(path, []byte(before+begin+"\n"+text+"\n"+end+after), 0o600); err != nil {
		return fmt.Errorf("write README: %w", err)
	}
	return nil
}
