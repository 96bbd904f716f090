package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
)

// printHelp prints help unbuffered, because kong reads the width of the terminal from standard output.
func printHelp(options kong.HelpOptions, command *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, command); err != nil {
		return console.WrapPrintError(err)
	}
	return console.WrapPrintError(printExamples(command.Stdout, commandPath(command)))
}

// withHelpFlag turns "help COMMAND" into "COMMAND --help".
func withHelpFlag(arguments []string) []string {
	if len(arguments) == 0 || arguments[0] != "help" {
		return arguments
	}
	return append(slices.Clone(arguments[1:]), "--help")
}

// commandPath returns the command of a parsed command line without its arguments.
func commandPath(command *kong.Context) string {
	path := []string{command.Model.Name}
	for _, element := range command.Path {
		if element.Command != nil {
			path = append(path, element.Command.Name)
		}
	}
	return strings.Join(path, " ")
}

// helpHint returns how to get the help of the command.
func helpHint(err error) string {
	command := "providerd"
	var usage *kong.ParseError
	if errors.As(err, &usage) && usage.Context != nil && usage.Context.Command() != "" {
		command = commandPath(usage.Context)
	}
	return fmt.Sprintf("Run %q for help.", command+" --help")
}
