package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
)

// manCommand is for packagers.
type manCommand struct{}

// Run prints a manual page with the help of all commands.
func (manCommand) Run(app *kong.Kong, out *console.Output) error {
	page := &manPage{}
	page.line(`.TH PROVIDERD 1 "" "providerd" "User Commands"`)
	page.section("NAME")
	page.text(`providerd - provider configuration server`)
	page.section("SYNOPSIS")
	page.line(`.B providerd`)
	page.line(`.I command`)
	page.line(`.RI [ flag " ...]"`)
	page.section("DESCRIPTION")
	page.text(app.Model.Help)
	page.section("OPTIONS")
	page.flags(app.Model.Flags)
	page.section("COMMANDS")
	commands := app.Model.Leaves(true)
	for _, command := range commands {
		page.command(command)
	}
	page.section("ENVIRONMENT")
	page.text("A flag overrides its variable.")
	page.environment(commands)
	_, err := out.Write([]byte(page.String()))
	return err
}

// manPage builds a page in the format of man(7).
type manPage struct{ strings.Builder }

// line adds a line in the format of man(7).
func (p *manPage) line(text string) { _, _ = p.WriteString(text + "\n") }

func (p *manPage) section(title string) { p.line(".SH " + title) }

// text adds paragraphs of plain text.
func (p *manPage) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		p.line(manText(strings.Join(strings.Fields(paragraph), " ")))
	}
}

// manText escapes text that man(7) would interpret.
func manText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// tagged adds a word with an indented paragraph below it.
func (p *manPage) tagged(word, text string) {
	p.line(".TP")
	p.line(`\fB` + manText(word) + `\fR`)
	p.text(text)
}

func (p *manPage) command(command *kong.Node) {
	usage := []string{command.FullPath()}
	for _, argument := range command.Positional {
		usage = append(usage, argument.Summary())
	}
	p.line(".SS " + manText(strings.Join(usage, " ")))
	p.text(command.Help)
	if command.Detail != "" {
		p.line(".PP")
		p.text(command.Detail)
	}
	for _, argument := range command.Positional {
		p.tagged(argument.Summary(), argument.Help)
	}
	p.flags(command.Flags)
	lines := examples()[command.FullPath()]
	if len(lines) == 0 {
		return
	}
	p.line(".PP\n.EX")
	for _, line := range lines {
		p.line(manText(line))
	}
	p.line(".EE")
}

func (p *manPage) flags(flags []*kong.Flag) {
	for _, flag := range flags {
		if !flag.Hidden {
			p.tagged(flag.String(), flag.Help)
		}
	}
}

// environment adds each variable once, with the flag that it sets.
func (p *manPage) environment(commands []*kong.Node) {
	flags := map[string]string{}
	for _, command := range commands {
		for _, flag := range command.Flags {
			for _, name := range flag.Envs {
				flags[name] = "--" + flag.Name
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		p.tagged(name, "Sets "+flags[name]+".")
	}
	p.tagged(apply.TokenVariable, fmt.Sprintf("Access token of %q.", "providerd apply"))
}
