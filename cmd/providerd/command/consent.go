package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"example.com/providerd/cmd/providerd/console"
)

// consentFlag is the flag of a command that destroys something.
type consentFlag struct {
	Yes bool `help:"Do not ask for confirmation. Required where standard input is no terminal."`
}

// Validate demands the flag where nobody can be asked.
func (f consentFlag) Validate() error {
	if f.Yes || isatty.IsTerminal(os.Stdin.Fd()) {
		return nil
	}
	return errors.New("missing flags: --yes, since standard input is no terminal to ask in")
}

// maxAnswerBytes is how much of an answer is read.
const maxAnswerBytes = 100

// ask asks whether something may be done. It returns an error unless the answer is yes.
func (f consentFlag) ask(what string) error {
	if f.Yes {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%s? [y/N] ", console.Printable(what))
	// Where the answer cannot be read, it is not yes.
	answer, _ := bufio.NewReader(io.LimitReader(os.Stdin, maxAnswerBytes)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("not confirmed; nothing was done")
	}
}
