package command

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
)

// manCommand is for packagers.
type manCommand struct{}

// Run prints a manual page, in the format of man(7), with the help of all commands.
func (manCommand) Run(app *kong.Kong, out *console.Output) error {
	var help strings.Builder
	app.Stdout = &help
	add := func(macro, title string, arguments ...string) error {
		help.Reset()
		traced, err := kong.Trace(app, arguments)
		if err == nil {
			options := kong.HelpOptions{Compact: true, FlagsLast: true, ValueFormatter: kong.DefaultHelpValueFormatter}
			err = printHelp(options, traced)
		}
		if err != nil {
			return fmt.Errorf("print help: %w", err)
		}
		return out.Line(macro + " " + title + "\n.nf\n" + manText(help.String()) + ".fi")
	}
	err := out.Line(".TH PROVIDERD 1 \"\" providerd \"User Commands\"\n" +
		".SH NAME\nproviderd \\- provider configuration server")
	if err == nil {
		err = add(".SH", "DESCRIPTION")
	}
	for _, command := range app.Model.Leaves(true) {
		if err == nil {
			path := pathOf(command)
			err = add(".SS", path, strings.Fields(path)[1:]...)
		}
	}
	return err
}

// manText escapes characters that man(7) would interpret.
func manText(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
}
