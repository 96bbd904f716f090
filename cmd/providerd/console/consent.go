package console

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// ConsentFlag is the flag of commands that change or destroy data.
type ConsentFlag struct {
	Yes bool `help:"Do not ask for confirmation. Required if stdin is not a terminal."`
}

// Validate requires the flag if there is no one to ask.
func (f ConsentFlag) Validate() error {
	if f.Yes || isatty.IsTerminal(os.Stdin.Fd()) {
		return nil
	}
	return errors.New("--yes is required when stdin is not a terminal")
}

// ErrNotConfirmed means that the user did not confirm.
var ErrNotConfirmed = errors.New("not confirmed; nothing was done")

// Ask asks for confirmation. It returns ErrNotConfirmed unless the answer is yes.
func (f ConsentFlag) Ask(what string) error {
	if f.Yes {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%s? [y/N] ", Printable(what))
	// An answer that cannot be read is not yes.
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return ErrNotConfirmed
	}
}
