package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// commandsIn returns the command lines of this program in a document, in blocks and in sentences.
func commandsIn(document string) []string {
	var found []string
	document = regexp.MustCompile("(?ms)^```[a-z]+\n.*?^```$").ReplaceAllStringFunc(document, func(block string) string {
		found = append(found, regexp.MustCompile(`(?m)^(?:bin/)?providerd [a-z][^#\n]*`).FindAllString(block, -1)...)
		return ""
	})
	for _, code := range codes(document) {
		if regexp.MustCompile(`^(?:bin/)?providerd\s+[a-z]`).MatchString(code) {
			found = append(found, code)
		}
	}
	return found
}

// commandOf returns the command of a command line, and the words after its name.
func commandOf(program *kong.Node, words []string) (command *kong.Node, rest []string) {
	for i, word := range words {
		child := slices.IndexFunc(program.Children, func(child *kong.Node) bool { return child.Name == word })
		if child < 0 {
			return orDefault(program), words[i:]
		}
		program = program.Children[child]
	}
	return orDefault(program), nil
}

// orDefault returns the command that runs if no subcommand is named.
func orDefault(command *kong.Node) *kong.Node {
	if command.DefaultCmd != nil {
		return command.DefaultCmd
	}
	return command
}

// codes returns the code spans of a text.
func codes(text string) []string {
	var found []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// TestDocumentsNameCommands looks up each command that a Markdown file of the repository names, and each of its flags.
func TestDocumentsNameCommands(t *testing.T) {
	t.Parallel()
	program := newTestParser(t).Model.Node
	named := 0
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			if err == nil && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return err
		}
		document, err := os.ReadFile(path)
		for _, line := range commandsIn(string(document)) {
			named++
			command, rest := commandOf(program, strings.Fields(line)[1:])
			if command.Type != kong.CommandNode || len(command.Children) > 0 {
				t.Errorf("%s: %q: unknown command", path, line)
			}
			for _, word := range rest {
				name, _, _ := strings.Cut(strings.Trim(word, "[]"), "=")
				flag, isFlag := strings.CutPrefix(name, "--")
				if isFlag && !slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == flag }) {
					t.Errorf("%s: %q: unknown flag --%s", path, line, flag)
				}
			}
		}
		return err
	})
	if err != nil || named < 50 {
		t.Errorf("found %d commands, %v", named, err)
	}
}
