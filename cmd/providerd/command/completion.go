package command

import (
	"fmt"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"example.com/providerd/cmd/providerd/console"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

// Run prints a script that makes the shell query this program for completions.
func (c *completionCommand) Run(command *kong.Context) error {
	code := kongcompletion.Completion{Shell: c.Shell, Code: true}
	if err := code.Run(command); err != nil {
		return fmt.Errorf("print completion script: %w", console.WrapPrintError(err))
	}
	return nil
}
