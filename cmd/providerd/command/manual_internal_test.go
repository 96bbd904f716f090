package command

import (
	"regexp"
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

// TestManualTables generates the part of the manual that describes the flags of the server.
func TestManualTables(t *testing.T) {
	t.Parallel()
	var flags strings.Builder
	for _, command := range newTestParser(t).Model.Leaves(true) {
		if commandName(command) == "serve" {
			for _, flag := range command.Flags {
				flags.WriteString(flagItem(flag))
			}
		}
	}
	manualtest.Check(t, "../manual/configuration.md", "flags of serve", flags.String())
}

// flagItem returns the item of a list for a flag, with its variable.
func flagItem(flag *kong.Flag) string {
	names := []string{code(strings.TrimSpace("--" + flag.Name + " " + flag.PlaceHolder))}
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
