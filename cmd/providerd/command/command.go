// Package command is the command line of providerd: its parser, and the commands that are short. What is large has a
// package of its own: serve, doctor and apply. What is printed is in console, what flags have in flags.
//
// Start with cli.go, which lists the commands, and with Main, which carries one out.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/server/contract"
)

// Exit statuses.
const (
	exitFailed  = 1
	exitMisused = 2
)

// Main carries out the command line that the program was started with, and returns the exit status.
func Main() int {
	// Otherwise a write to a pipe whose reader is gone ends the program, whatever it has still to put right.
	signal.Ignore(syscall.SIGPIPE)
	return run(context.Background(), os.Args[1:])
}

// run carries out one command line and returns the exit status.
func run(ctx context.Context, arguments []string) int {
	contract, err := contract.Load(ctx)
	if err != nil {
		return complain(err, exitFailed)
	}
	var root cli
	parser, err := newParser(&root, contract.OperationIDs())
	if err != nil {
		return complain(err, exitFailed)
	}
	kongcompletion.Register(parser)
	if err := checkUTF8(arguments); err != nil {
		return complainOfMisuse(err)
	}
	command, err := parser.Parse(withHelpFlag(arguments))
	if errors.Is(err, console.ErrPrint) {
		return failure(err)
	}
	if err != nil {
		return complainOfMisuse(err)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	version, _ := builtFrom()
	command.Bind(&console.Messages{File: os.Stderr, IsQuiet: root.Quiet}, serve.Version(version))
	return failure(runCommand(command, contract))
}

// failure says why a command failed, and returns the exit status. Where a reader such as head has closed its pipe, it
// says nothing, as other programs that end by SIGPIPE, but the command has failed: not all was printed.
func failure(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, console.ErrReported), console.IsBrokenPipe(err):
		return exitFailed
	default:
		return complain(console.Explain(err), exitFailed)
	}
}

// runCommand carries out a command that was parsed. What it could not print is an error.
func runCommand(command *kong.Context, contract *contract.Document) error {
	out := console.NewOutput(os.Stdout)
	if err := command.BindToProvider(checkServe); err != nil {
		return fmt.Errorf("bind the configuration: %w", err)
	}
	err := command.Run(contract, out)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	return err
}

func complain(err error, status int) int {
	(&console.Messages{File: os.Stderr}).Error(err)
	return status
}

// complainOfMisuse says what is wrong with a command line, and which help page tells more.
func complainOfMisuse(err error) int {
	status := complain(errors.New(describeMisuse(err)), exitMisused)
	fmt.Fprintln(os.Stderr, helpHint(err))
	return status
}

// checkUTF8 refuses arguments that the parser would change: it puts U+FFFD in the place of what is no character, so
// that two names, or two paths, become one.
func checkUTF8(arguments []string) error {
	for i, argument := range arguments {
		if !utf8.ValidString(argument) {
			return fmt.Errorf("argument %d is not UTF-8", i+1)
		}
	}
	return nil
}
