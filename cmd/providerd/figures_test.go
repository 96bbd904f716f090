package main

import (
	"fmt"
	"os"
	"strings"
)

// putFigures replaces figures in a README, which stand between a comment with this title and one that ends them.
func putFigures(path, title, text string) error {
	begin, end := "<!-- "+title+" -->\n", "<!-- end of figures -->\n"
	readme, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(readme), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for %q", path, title)
	}
	return os.WriteFile(path, []byte(before+begin+"\n"+text+"\n"+end+after), 0o600)
}
