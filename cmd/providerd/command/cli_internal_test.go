package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/manual/manualtest"
)

func newTestParser(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := newParser(&cli{}, "unknown")
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// TestManualTables generates the part of the manual that describes the flags of the server.
func TestManualTables(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for _, command := range newTestParser(t).Model.Leaves(true) {
		if commandName(command) != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			names := []string{strings.TrimSpace("--" + flag.Name + " " + flag.PlaceHolder)}
			names = append(names, flag.Envs...)
			fmt.Fprintf(&list, "- `%s`: %s\n", strings.Join(names, "`, `"), meaning(flag))
		}
	}
	manualtest.Check(t, "../manual/configuration.md", "flags of serve", list.String())
}

// commandName returns the name of a command without that of the program.
func commandName(command *kong.Node) string {
	return strings.TrimPrefix(pathOf(command), "providerd ")
}

// meaning returns the help of a flag without its variable, and its default, unless that is in its help, depends on other
// flags or is none.
func meaning(flag *kong.Flag) string {
	help := regexp.MustCompile(` \([^()]*(PROVIDERD_[A-Z_]+|default)[^()]*\)`).ReplaceAllString(flag.Help, "")
	if flag.Enum != "" {
		help = strings.ReplaceAll(help, flag.Enum, "`"+strings.ReplaceAll(flag.Enum, ",", "`, `")+"`")
	}
	explained := regexp.MustCompile(`\bdefault:? ([^);]+)[);]`).FindStringSubmatch(flag.Help)
	switch {
	case flag.HasDefault:
		return help + " Default: `" + flag.Default + "`."
	case explained != nil && explained[1] != "none":
		return help + " Default: " + explained[1] + "."
	default:
		return help
	}
}

// commandsIn returns the command lines of this program in a document, in blocks and in sentences.
func commandsIn(document string) []string {
	var found []string
	document = regexp.MustCompile("(?ms)^```[a-z]+\n.*?^```$").ReplaceAllStringFunc(document, func(block string) string {
		found = append(found, regexp.MustCompile(`(?m)^(?:bin/)?providerd [a-z][^#\n]*`).FindAllString(block, -1)...)
		return ""
	})
	for _, code := range regexp.MustCompile("`((?:bin/)?providerd\\s+[a-z][^`]*)`").FindAllStringSubmatch(document, -1) {
		found = append(found, code[1])
	}
	return found
}

// commandOf returns the command of a command line, or the one that runs if no subcommand is named, and the words after
// its name.
func commandOf(program *kong.Node, words []string) (command *kong.Node, rest []string) {
	for i, word := range words {
		child := slices.IndexFunc(program.Children, func(child *kong.Node) bool { return child.Name == word })
		if child < 0 {
			rest = words[i:]
			break
		}
		program = program.Children[child]
	}
	return cmp.Or(program.DefaultCmd, program), rest
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

// Each command has examples, and each of them is one that the command takes.
func TestExamplesAreCommandLines(t *testing.T) {
	t.Parallel()
	parser := newTestParser(t)
	unknown := map[string]bool{}
	for line := range strings.Lines(examples) {
		unknown[strings.TrimSpace(line)] = true
	}
	for _, leaf := range parser.Model.Leaves(true) {
		lines := examplesOf(leaf)
		if len(lines) == 0 {
			t.Errorf("%s has no example", pathOf(leaf))
		}
		for _, line := range lines {
			delete(unknown, line)
			_, arguments, _ := strings.Cut(line, "providerd ")
			arguments = regexp.MustCompile(`[)>|].*`).ReplaceAllString(arguments, "")
			trace, err := kong.Trace(parser, withHelpFlag(strings.Fields(arguments)))
			if err != nil || trace.Error != nil {
				t.Errorf("%q: %v, %v", line, err, trace.Error)
				continue
			}
			if trace.Selected() != leaf && leaf.Name != "help" {
				t.Errorf("%q is an example of %s", line, pathOf(trace.Selected()))
			}
		}
	}
	for line := range unknown {
		t.Errorf("%q is not an example of a command", line)
	}
}

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
			t.Errorf("%q is not a request of this page", line)
		}
	}
}

// TestCommandLineIsSmall counts the commands, and the names of their flags.
func TestCommandLineIsSmall(t *testing.T) {
	t.Parallel()
	const maxFlags = 60
	commands, flags := []string{}, map[string]bool{}
	for _, command := range newTestParser(t).Model.Leaves(false) {
		if name := commandName(command); name != "help" && name != "man" {
			commands = append(commands, name)
		}
		for _, flag := range slices.Concat(command.AllFlags(false)...) {
			flags[flag.Name] = true
		}
	}
	if want := []string{
		"serve", "migrate",
		"provider list", "provider show", "provider export", "provider create", "provider update", "provider delete",
		"apply",
		"application create", "application list", "application link", "application unlink", "application delete",
		"token create", "token list", "token renew", "token revoke",
		"audit list", "audit verify",
		"key create", "key list", "key rotate", "key reseal", "key rewrap",
		"backup", "restore", "copy", "doctor", "health", "version", "completion",
	}; !slices.Equal(commands, want) {
		t.Errorf("commands are %q, want %q", commands, want)
	}
	if len(flags) > maxFlags {
		t.Errorf("there are %d flags, want at most %d", len(flags), maxFlags)
	}
}
