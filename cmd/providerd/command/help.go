package command

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"example.com/providerd/cmd/providerd/console"
)

// helpCommand lists "help" among the commands; withHelpFlag implements it.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command, such as token create."`
}

// printHelp prints help unbuffered, because kong reads the width of the terminal from standard output.
func printHelp(options kong.HelpOptions, command *kong.Context) error {
	node := selected(command)
	_, err := fmt.Fprintf(command.Stdout, "Usage: %s\n", usageOf(node))
	if err == nil {
		options.NoAppSummary = true
		err = kong.DefaultHelpPrinter(options, command)
	}
	if lines := examplesOf(node); len(lines) > 0 && err == nil {
		_, err = fmt.Fprintf(command.Stdout, "\nExamples:\n  %s\n", strings.Join(lines, "\n  "))
	}
	return console.WrapPrintError(err)
}

// examples are the example command lines of all commands.
//
//go:embed examples.txt
var examples string

// examplesOf returns the examples of a command or of a group of commands; none of the program itself.
func examplesOf(node *kong.Node) (lines []string) {
	for line := range strings.Lines(examples) {
		line = strings.TrimSpace(line)
		if node.Parent != nil && strings.Contains(line+" ", pathOf(node)+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// selected returns the command of a command line, or the program.
func selected(context *kong.Context) *kong.Node {
	if command := context.Selected(); command != nil {
		return command
	}
	return context.Model.Node
}

// usageOf returns the command line of a command. A command with alternatives has them in a tag of its own.
func usageOf(node *kong.Node) string {
	if node.Parent == nil {
		return node.Name + " <command> [flags]"
	}
	if usage := node.Tag.Get("usage"); usage != "" {
		return pathOf(node) + " " + usage
	}
	return "providerd " + withoutAliases(node.Summary())
}

// pathOf returns the names of the program and a command, without aliases.
func pathOf(node *kong.Node) string { return withoutAliases(node.FullPath()) }

func withoutAliases(path string) string {
	return regexp.MustCompile(` \([a-z,]+\)`).ReplaceAllString(path, "")
}

// withHelpFlag turns "help COMMAND" into "COMMAND --help". Without arguments, help is printed.
func withHelpFlag(arguments []string) []string {
	switch {
	case len(arguments) == 0:
		return []string{"--help"}
	case arguments[0] != "help":
		return arguments
	default:
		return append(slices.Clone(arguments[1:]), "--help")
	}
}

// manCommand is for packagers.
type manCommand struct{}

// Run prints a manual page, in the format of man(7), with the help of all commands.
func (manCommand) Run(app *kong.Kong, out *console.Output) error {
	var page, help strings.Builder
	page.WriteString(".TH PROVIDERD 1 \"\" providerd \"User Commands\"\n" +
		".SH NAME\nproviderd \\- provider configuration server")
	app.Stdout = &help
	options := kong.HelpOptions{Compact: true, FlagsLast: true, ValueFormatter: kong.DefaultHelpValueFormatter}
	for _, node := range slices.Insert(app.Model.Leaves(true), 0, app.Model.Node) {
		path, heading := pathOf(node), ".SH DESCRIPTION"
		if node.Parent != nil {
			heading = ".SS " + path
		}
		help.Reset()
		traced, err := kong.Trace(app, strings.Fields(path)[1:])
		if err == nil {
			err = printHelp(options, traced)
		}
		if err != nil {
			return fmt.Errorf("print help: %w", err)
		}
		page.WriteString("\n" + heading + "\n.nf\n" + manText(help.String()) + ".fi")
	}
	return out.Line(page.String())
}

// manText escapes characters that man(7) would interpret.
func manText(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
}

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

// Run prints a script that makes the shell query this program for completions.
func (c *completionCommand) Run(command *kong.Context) error {
	code := kongcompletion.Completion{Shell: c.Shell, Code: true}
	if c.Shell == "zsh" {
		// An error recurs below.
		_, _ = fmt.Fprintln(command.Stdout, "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }")
	}
	if err := code.Run(command); err != nil {
		return fmt.Errorf("print completion script: %w", console.WrapPrintError(err))
	}
	return nil
}
