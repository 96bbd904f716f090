package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

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

// Ask asks for confirmation of what was printed. It returns an error unless the answer is yes.
func (f ConsentFlag) Ask(out *Output, what string) error {
	lost := out.Lost()
	if f.Yes {
		return nil
	}
	if lost != nil {
		// Not wrapped, because a broken pipe would not be reported.
		return fmt.Errorf("cannot show what would change: %s; nothing was stored; pass --yes to store it without "+
			"confirmation", lost.Error())
	}
	fmt.Fprintf(os.Stderr, "%s? [y/N] ", Printable(what))
	const maxAnswerBytes = 100
	// An answer that cannot be read is not yes.
	answer, _ := bufio.NewReader(io.LimitReader(os.Stdin, maxAnswerBytes)).ReadString('\n')
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return errors.New("not confirmed; nothing was done")
	}
	return nil
}

// UntilInterrupted returns a context that the first SIGINT or SIGTERM cancels.
func UntilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
