package command

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/manual/manualtest"
)

func newTestParser(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := newParser(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// TestManualTables generates the parts of the manual that describe the command line.
func TestManualTables(t *testing.T) {
	t.Parallel()
	const reference = "../manual/reference.md"
	program := newTestParser(t).Model
	commands := program.Leaves(true)
	shared := sharedFlags(commands)
	var text strings.Builder
	for _, flag := range append(program.Flags, shared...) {
		text.WriteString(flagItem(flag))
	}
	manualtest.Check(t, reference, "shared flags", text.String())
	text.Reset()
	explained := map[string]bool{}
	for _, command := range commands {
		text.WriteString(commandItem(command, shared, explained))
	}
	manualtest.Check(t, reference, "commands", text.String())
	manualtest.Check(t, reference, "exit statuses", manualtest.Table([]string{"status", "meaning"}, [][]string{
		{"0", "the command succeeded"},
		{strconv.Itoa(exitFailed), "the command failed"},
		{strconv.Itoa(exitUsage), "the command line or a variable is invalid; nothing was done"},
		{strconv.Itoa(exitDiffers), "`apply` and `audit verify` only: nothing failed, but stored records differ"},
	}))
}

// sharedFlags returns the flags that are the same in more than five commands.
func sharedFlags(commands []*kong.Node) (shared []*kong.Flag) {
	const few = 5
	count := map[string]int{}
	for _, command := range commands {
		for _, flag := range command.Flags {
			item := flagItem(flag)
			if count[item]++; count[item] == few+1 {
				shared = append(shared, flag)
			}
		}
	}
	return shared
}

// commandItem returns the item of a list for a command. It has the flags that are not shared: those that are explained
// above without their meaning.
func commandItem(command *kong.Node, shared []*kong.Flag, explained map[string]bool) string {
	text := "- " + code(strings.TrimPrefix(usage(command), "providerd ")) + ": " + command.Help + "\n"
	if commandName(command) == "doctor" {
		return text + "  - The flags of `serve`.\n"
	}
	var above []string
	for _, flag := range command.Flags {
		item := flagItem(flag)
		isShared := slices.ContainsFunc(shared, func(other *kong.Flag) bool { return flagItem(other) == item })
		switch {
		case isShared || flag.Group != nil: // The table of fields has the flags with a group.
		case explained[item]:
			above = append(above, code("--"+flag.Name))
		default:
			explained[item] = true
			text += "  " + item
		}
	}
	if len(above) > 0 {
		text += "  - As above: " + strings.Join(above, ", ") + "\n"
	}
	return text
}

// flagItem returns the item of a list for a flag, with its variable.
func flagItem(flag *kong.Flag) string {
	names := []string{code(flagUsage(flag))}
	for _, name := range flag.Envs {
		names = append(names, code(name))
	}
	return "- " + strings.Join(names, ", ") + ": " + meaning(flag) + "\n"
}

// commandName returns the name of a command without that of the program.
func commandName(command *kong.Node) string {
	return strings.TrimPrefix(pathOf(command), "providerd ")
}

func code(text string) string { return "`" + text + "`" }

// usage returns the command line with all that the command requires. Of flags that exclude each other it has the first.
func usage(command *kong.Node) string {
	words, chosen := []string{pathOf(command)}, map[string]bool{}
	for _, flag := range command.Flags {
		group := strings.Join(flag.Xor, "")
		if flag.Required && !chosen[group] {
			words = append(words, flagUsage(flag))
			chosen[group] = group != ""
		}
	}
	for _, argument := range command.Positional {
		word := strings.NewReplacer("<", "", ">", "", " ...", "...").Replace(strings.ToUpper(argument.Summary()))
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func flagUsage(flag *kong.Flag) string {
	name := "--" + flag.Name
	if flag.Short != 0 {
		name = "-" + string(flag.Short) + ", " + name
	}
	if flag.IsBool() || flag.IsCounter() || flag.PlaceHolder == "" {
		return name
	}
	return name + " " + flag.PlaceHolder
}

// meaning returns the help of a flag with its default, and without its variable.
func meaning(flag *kong.Flag) string {
	help := regexp.MustCompile(` \([^()]*(PROVIDERD_[A-Z_]+|default)[^()]*\)`).ReplaceAllString(flag.Help, "")
	if flag.Enum != "" {
		help = strings.ReplaceAll(help, flag.Enum, code(strings.ReplaceAll(flag.Enum, ",", "`, `")))
	}
	return help + byDefault(flag)
}

// byDefault returns a sentence with the default of a flag, unless that is in its help, depends on other flags or is none.
func byDefault(flag *kong.Flag) string {
	explained := regexp.MustCompile(`\bdefault:? ([^);]+)[);]`).FindStringSubmatch(flag.Help)
	switch {
	case flag.HasDefault:
		return " Default: " + code(flag.Default) + "."
	case explained != nil && explained[1] != "none":
		return " Default: " + explained[1] + "."
	default:
		return ""
	}
}
