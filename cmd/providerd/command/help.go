package command

import (
	"slices"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
)

// printHelp prints a help page past the buffer, since kong looks at standard output for the width of the terminal.
func printHelp(options kong.HelpOptions, command *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, command); err != nil {
		return console.PrintError(err)
	}
	return console.PrintError(printExamples(command.Stdout, commandPath(command)))
}

// withHelpFlag turns "help COMMAND" into "COMMAND --help".
func withHelpFlag(arguments []string) []string {
	if len(arguments) == 0 || arguments[0] != "help" {
		return arguments
	}
	return append(slices.Clone(arguments[1:]), "--help")
}
