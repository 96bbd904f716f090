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

	"example.com/providerd/cmd/providerd/apply"
)

func newTestParser(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := newParser(&cli{}, []string{"providers_oauth2_create", "providers_workspace_directory_create"})
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// nameOf is how a command is called behind the name of the program.
func nameOf(command *kong.Node) string { return strings.TrimPrefix(command.FullPath(), "providerd ") }

// usageOf is a command line with all that the command demands. Of flags that stand for each other, the first is there.
func usageOf(command *kong.Node) string {
	usage, chosen := command.FullPath(), map[string]bool{}
	for _, flag := range command.Flags {
		group := strings.Join(flag.Xor, "")
		if !flag.Required || chosen[group] {
			continue
		}
		if usage += " --" + flag.Name; !flag.IsBool() {
			usage += " " + flag.FormatPlaceHolder()
		}
		chosen[group] = group != ""
	}
	for _, argument := range command.Positional {
		usage += " " + strings.NewReplacer("<", "", ">", "", " ...", "...").Replace(strings.ToUpper(argument.Summary()))
	}
	return usage
}

// TestReadmeListsCommands compares the table of commands with the program.
func TestReadmeListsCommands(t *testing.T) {
	t.Parallel()
	var listed, want []string
	for _, row := range tableUnder(t, "| command | does |") {
		listed = append(listed, codes(row[0])[0])
		if row[1] == "" {
			t.Errorf("%s: it is not said what it does", row[0])
		}
	}
	for _, command := range newTestParser(t).Model.Leaves(true) {
		want = append(want, usageOf(command))
	}
	if !slices.Equal(listed, want) {
		t.Errorf("the README lists\n%s\nthe program has\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
}

// TestReadmeHasFlagsOfAll looks for the flags that every command has, and for the variables that stand for none.
func TestReadmeHasFlagsOfAll(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	has := codes(string(readme))
	for _, flag := range newTestParser(t).Model.Flags {
		if !slices.Contains(has, "--"+flag.Name) || flag.Short != 0 && !slices.Contains(has, "-"+string(flag.Short)) {
			t.Errorf("--%s is missing", flag.Name)
		}
	}
	if !slices.Contains(has, apply.TokenVariable) {
		t.Errorf("%s is missing", apply.TokenVariable)
	}
}

// commandsIn are the command lines of this program in a README, be they in a block or in a sentence.
func commandsIn(readme string) []string {
	var found []string
	readme = regexp.MustCompile("(?ms)^```[a-z]+\n.*?^```$").ReplaceAllStringFunc(readme, func(block string) string {
		found = append(found, regexp.MustCompile(`(?m)^(?:bin/)?providerd [a-z][^#\n]*`).FindAllString(block, -1)...)
		return ""
	})
	for _, code := range codes(readme) {
		if regexp.MustCompile(`^(?:bin/)?providerd\s+[a-z]`).MatchString(code) {
			found = append(found, code)
		}
	}
	return found
}

// commandOf finds the command of a command line, and what is behind its name.
func commandOf(program *kong.Node, words []string) (command *kong.Node, rest []string) {
	for i, word := range words {
		child := slices.IndexFunc(program.Children, func(child *kong.Node) bool { return child.Name == word })
		if child < 0 {
			return program, words[i:]
		}
		program = program.Children[child]
	}
	return program, nil
}

// TestReadmesNameCommands looks up each command that a README names, and each of its flags.
func TestReadmesNameCommands(t *testing.T) {
	t.Parallel()
	program := newTestParser(t).Model.Node
	named := 0
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "README.md" {
			if err == nil && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return err
		}
		readme, err := os.ReadFile(path)
		for _, line := range commandsIn(string(readme)) {
			named++
			command, rest := commandOf(program, strings.Fields(line)[1:])
			if command.Type != kong.CommandNode || len(command.Children) > 0 {
				t.Errorf("%s: %q: there is no such command", path, line)
			}
			for _, word := range rest {
				flag, isFlag := strings.CutPrefix(strings.Trim(word, "[]"), "--")
				if isFlag && !slices.ContainsFunc(command.Flags, func(one *kong.Flag) bool { return one.Name == flag }) {
					t.Errorf("%s: %q: there is no flag --%s", path, line, flag)
				}
			}
		}
		return err
	})
	if err != nil || named < 50 {
		t.Errorf("%d commands were found, %v", named, err)
	}
}
