// Package command is the command line of providerd: the parser and the short commands. The large ones are packages of
// their own: serve and apply. Package console parses values and prints.
//
// Start with cli.go, which lists the commands, and with Main, which runs one.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/server/contract"
)

// Exit statuses.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitDiffers = 3
)

// Main runs the command line of the process and returns the exit status.
func Main() int {
	// Otherwise a write to a pipe without a reader would end the program before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	return run(context.Background(), os.Args[1:])
}

// run runs one command line and returns the exit status.
func run(ctx context.Context, arguments []string) int {
	var root cli
	parser, err := newParser(&root)
	if err == nil {
		err = trimVariables(parser)
	}
	if err != nil {
		return printError(err, exitFailed)
	}
	kongcompletion.Register(parser)
	if err := checkUTF8(arguments); err != nil {
		return printUsageError(err)
	}
	command, err := parser.Parse(withHelpFlag(arguments))
	if errors.Is(err, console.ErrPrint) {
		return failure(err)
	}
	messages := &console.Messages{File: os.Stderr, IsQuiet: root.Quiet}
	warnings := unknownVariables(parser)
	// serve logs the warnings, and doctor reports the variables in its table.
	if err != nil || !slices.Contains([]string{"serve", "doctor"}, command.Command()) {
		for _, warning := range warnings {
			messages.Warn("%s", warning)
		}
	}
	if err != nil {
		return printUsageError(err)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	version, _ := builtFrom()
	command.Bind(messages, serve.Version(version), serve.VariableWarnings(warnings))
	return failure(runCommand(ctx, command))
}

// failure prints why a command failed and returns the exit status. If a reader such as head has closed the pipe, it
// prints nothing, like a program that SIGPIPE ends; the command still failed, because output was lost.
func failure(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, console.ErrReported), console.IsBrokenPipe(err):
		return exitFailed
	case errors.As(err, new(apply.DiffersError)), errors.Is(err, errAuditDiffers):
		return printError(err, exitDiffers)
	default:
		return printError(console.Explain(err), exitFailed)
	}
}

// runCommand runs a parsed command and prints its output.
func runCommand(ctx context.Context, command *kong.Context) error {
	out := console.NewOutput(os.Stdout)
	out.IsReport = selected(command).Tag.Has("report")
	// Most commands need neither, and a contract takes longer to parse than they take to run.
	loadContract := func() (*contract.Document, error) { return contract.Load(ctx) }
	err := command.BindToProvider(loadContract)
	if err == nil {
		err = command.Run(out)
	}
	return out.End(err)
}

func printError(err error, status int) int {
	(&console.Messages{File: os.Stderr}).Error(err)
	return status
}

// checkUTF8 refuses arguments that the parser would change: it replaces invalid UTF-8 by U+FFFD, which would make two
// names or paths the same.
func checkUTF8(arguments []string) error {
	for i, argument := range arguments {
		if !utf8.ValidString(argument) {
			return fmt.Errorf("argument %d is not UTF-8; type it in a UTF-8 locale, such as LANG=C.UTF-8", i+1)
		}
	}
	return nil
}

// untilInterrupted returns a context that the first SIGINT or SIGTERM cancels.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
