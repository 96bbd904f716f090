package command

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
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

// TestManualTables generates the tables of the manual that describe the command line.
func TestManualTables(t *testing.T) {
	t.Parallel()
	program := newTestParser(t).Model
	commands := program.Leaves(true)
	var serve []*kong.Flag
	var others []*kong.Node
	for _, command := range commands {
		if command.Name == "serve" {
			serve = command.Flags
		} else {
			others = append(others, command)
		}
	}
	const configuration, reference = "../manual/configuration.md", "../manual/commands.md"
	manualtest.Check(t, configuration, "flags of serve", serveTable(serve))
	manualtest.Check(t, configuration, "variables", variablesTable(commands))
	manualtest.Check(t, reference, "commands", commandsTable(commands))
	manualtest.Check(t, reference, "flags of all commands", flagsTable("meaning", program.Flags))
	manualtest.Check(t, "../manual/flags.md", "flags", sharedFlagsTable(others))
	manualtest.Check(t, reference, "exit statuses", manualtest.Table([]string{"status", "meaning"}, [][]string{
		{"0", "the command succeeded"},
		{strconv.Itoa(exitFailed), "the command failed"},
		{strconv.Itoa(exitUsage), "the command line or a variable is invalid; nothing was done"},
		{strconv.Itoa(exitDiffers), "`apply` and `audit verify` only: nothing failed, but stored records differ"},
	}))
}

// commandName returns the name of a command without that of the program.
func commandName(command *kong.Node) string {
	return strings.TrimPrefix(fullPath(command), "providerd ")
}

// fullPath returns the name of a command, with that of the program and without aliases.
func fullPath(command *kong.Node) string {
	return regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(command.FullPath(), "")
}

func code(text string) string { return "`" + text + "`" }

// cell escapes text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "\n", " ").Replace(text)
}

// usage returns the command line with all that the command requires. Of flags that exclude each other it has the first.
func usage(command *kong.Node) string {
	words, chosen := []string{fullPath(command)}, map[string]bool{}
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

// meaning returns the help of a flag without its variable and its default, which have columns of their own.
func meaning(flag *kong.Flag) string {
	help := regexp.MustCompile(` \([^()]*(PROVIDERD_[A-Z_]+|default)[^()]*\)`).ReplaceAllString(flag.Help, "")
	if flag.Enum != "" {
		help = strings.ReplaceAll(help, flag.Enum, code(strings.ReplaceAll(flag.Enum, ",", "`, `")))
	}
	return cell(help)
}

// defaultOf returns the default of a flag. One that depends on other flags is only in the help.
func defaultOf(flag *kong.Flag) string {
	switch explained := regexp.MustCompile(`\bdefault:? ([^);]+)[);]`).FindStringSubmatch(flag.Help); {
	case flag.HasDefault:
		return code(flag.Default)
	case flag.Required:
		return "required"
	case explained != nil:
		return cell(explained[1])
	default:
		return ""
	}
}

func variablesOf(flag *kong.Flag) string {
	var names []string
	for _, name := range flag.Envs {
		names = append(names, code(name))
	}
	return strings.Join(names, ", ")
}

func serveTable(flags []*kong.Flag) string {
	var rows [][]string
	for _, flag := range flags {
		rows = append(rows, []string{code(flagUsage(flag)), variablesOf(flag), defaultOf(flag), meaning(flag)})
	}
	return manualtest.Table([]string{"flag", "variable", "default", "meaning"}, rows)
}

func flagsTable(help string, flags []*kong.Flag) string {
	var rows [][]string
	for _, flag := range flags {
		rows = append(rows, []string{code(flagUsage(flag)), meaning(flag)})
	}
	return manualtest.Table([]string{"flag", help}, rows)
}

func commandsTable(commands []*kong.Node) string {
	var rows [][]string
	for _, command := range commands {
		rows = append(rows, []string{code(usage(command)), cell(command.Help)})
	}
	return manualtest.Table([]string{"command", "purpose"}, rows)
}

// sharedFlagsTable has one row for flags that are the same in several commands.
func sharedFlagsTable(commands []*kong.Node) string {
	type row struct{ flag, variables, byDefault, meaning string }
	var order []row
	having := map[row][]string{}
	for _, command := range commands {
		for _, flag := range command.Flags {
			if flag.Group != nil {
				continue // The table of fields has it.
			}
			r := row{code(flagUsage(flag)), variablesOf(flag), defaultOf(flag), meaning(flag)}
			if having[r] == nil {
				order = append(order, r)
			}
			having[r] = append(having[r], code(commandName(command)))
		}
	}
	var rows [][]string
	for _, r := range order {
		rows = append(rows, []string{r.flag, namesOf(having[r], commands), r.variables, r.byDefault, r.meaning})
	}
	return manualtest.Table([]string{"flag", "commands", "variable", "default", "meaning"}, rows)
}

// namesOf lists commands, or the others if they are fewer.
func namesOf(some []string, all []*kong.Node) string {
	if len(some) <= len(all)/2 {
		return strings.Join(some, ", ")
	}
	var others []string
	for _, command := range all {
		if name := code(commandName(command)); !slices.Contains(some, name) {
			others = append(others, name)
		}
	}
	return "all except " + strings.Join(others, ", ")
}

func variablesTable(commands []*kong.Node) string {
	flags, having := map[string]string{}, map[string][]string{}
	for _, command := range commands {
		for _, flag := range command.Flags {
			for _, name := range flag.Envs {
				flags[name] = code("--" + flag.Name)
				having[name] = append(having[name], code(commandName(command)))
			}
		}
	}
	flags[apply.TokenVariable], having[apply.TokenVariable] = "the token, which has no flag", []string{code("apply")}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		rows = append(rows, []string{code(name), flags[name], namesOf(having[name], commands)})
	}
	return manualtest.Table([]string{"variable", "stands for", "of the commands"}, rows)
}
