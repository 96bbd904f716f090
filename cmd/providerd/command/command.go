// Package command is the command line of providerd: the tree of commands, their help, and usage errors. Each group of
// commands has a package below this one; serve and apply have packages next to it. What commands share is in console.
//
// Start with the type cli, which lists the commands, and with Main, which runs one.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/command/application"
	"example.com/providerd/cmd/providerd/command/audit"
	"example.com/providerd/cmd/providerd/command/data"
	"example.com/providerd/cmd/providerd/command/diagnose"
	"example.com/providerd/cmd/providerd/command/key"
	"example.com/providerd/cmd/providerd/command/provider"
	"example.com/providerd/cmd/providerd/command/token"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/server/contract"
)

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

func run(ctx context.Context, arguments []string) int {
	var root cli
	version, _ := diagnose.BuiltFrom()
	parser, err := newParser(&root, version)
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
	if err == nil {
		err = checkRepeated(command)
	}
	if err != nil {
		return printUsageError(err)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(messages, serve.Version(version), serve.VariableWarnings(warnings))
	messages.Out = console.NewOutput(os.Stdout)
	messages.Out.IsReport = selected(command).Tag.Has("report")
	// Most commands do not need the contract, which takes longer to parse than they take to run.
	if err = command.BindToProvider(contract.Load); err == nil {
		err = command.Run(messages.Out)
	}
	return failure(messages.Out.End(err))
}

// failure prints why a command failed and returns the exit status. If a reader such as head has closed the pipe, it
// prints nothing, like a program that SIGPIPE ends; the command still failed, because output was lost.
func failure(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, console.ErrReported), console.IsBrokenPipe(err):
		return exitFailed
	case errors.As(err, new(console.DiffersError)):
		return printError(err, exitDiffers)
	default:
		return printError(console.Explain(err), exitFailed)
	}
}

func printError(err error, status int) int {
	(&console.Messages{File: os.Stderr}).Error(err)
	return status
}

// checkRepeated refuses a flag that takes one value and is passed twice: the first would be ignored. Of a flag that a
// variable can set, the last one counts, so that wrappers can append theirs.
func checkRepeated(command *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, path := range command.Path {
		flag := path.Flag
		if flag == nil || flag.IsCumulative() || flag.IsBool() || len(flag.Envs) > 0 {
			continue
		}
		if seen[flag] {
			return fmt.Errorf("--%s appears twice; pass it once", flag.Name)
		}
		seen[flag] = true
	}
	return nil
}

// checkUTF8 refuses invalid UTF-8: the parser replaces it by U+FFFD, which would make two names or paths the same.
func checkUTF8(arguments []string) error {
	isInvalid := func(argument string) bool { return !utf8.ValidString(argument) }
	if i := slices.IndexFunc(arguments, isInvalid); i >= 0 {
		return fmt.Errorf("argument %d is not UTF-8; type it in a UTF-8 locale, such as LANG=C.UTF-8", i+1)
	}
	return nil
}

// cli has the commands. The output of those with the tag "report" only reports on a result: what they change, or what
// their exit status says. apply decides for itself. The tag "synonyms" has what other programs call a command.
type cli struct {
	Serve       serve.Command        `cmd:"" synonyms:"start run up daemon" group:"Serve" help:"Serve the API until a signal arrives."`
	Migrate     data.Migrate         `cmd:"" synonyms:"upgrade" group:"Serve" help:"Migrate the database to the schema version of this program."`
	Provider    provider.Commands    `cmd:"" group:"Providers" help:"Create, list, show, update, delete and export providers."`
	Apply       apply.Command        `cmd:"" synonyms:"import sync" group:"Providers" help:"Create and change providers to match YAML files."`
	Application application.Commands `cmd:"" group:"Providers" help:"Manage applications and their links to providers."`
	Token       token.Commands       `cmd:"" group:"Access" help:"Create, list, renew and revoke access tokens."`
	Audit       audit.Commands       `cmd:"" group:"Access" help:"Show, follow and verify the audit trail of providers, tokens and keys."`
	Key         key.Commands         `cmd:"" group:"Keys" help:"Manage the keys that encrypt secrets at rest."`
	Backup      data.Backup          `cmd:"" synonyms:"dump" report:"" group:"Data" help:"Back up a SQLite database, and verify the backup."`
	Restore     data.Restore         `cmd:"" group:"Data" help:"Restore a SQLite database from a backup."`
	Copy        data.Copy            `cmd:"" report:"" group:"Data" help:"Copy a database, for example from SQLite to PostgreSQL."`
	Doctor      diagnose.Doctor      `cmd:"" synonyms:"check diagnose" report:"" group:"Diagnose" help:"Check configuration, files, database and disk."`
	Health      diagnose.Health      `cmd:"" synonyms:"status ping" report:"" group:"Diagnose" help:"Check whether the server on this host is ready."`
	Version     diagnose.Version     `cmd:"" group:"Diagnose" help:"Print the versions of the program and its parts."`
	Help        helpCommand          `cmd:"" group:"Help" help:"Show the help of a command."`
	Man         manCommand           `cmd:"" hidden:"" help:"Print the manual page."`
	Completion  completionCommand    `cmd:"" group:"Help" help:"Print a shell completion script."`

	PrintVersion kong.VersionFlag `name:"version" group:"Flags of all commands:" help:"Print the version."`
	Quiet        bool             `short:"q" group:"Flags of all commands:" help:"Print and log only warnings and errors."`
}

const description = "Provider configuration server: creates OAuth2 and workspace directory-sync providers over an " +
	"HTTP JSON API.\n\n\"providerd serve\" starts a server, and \"providerd help token create\" shows the help of a " +
	"command.\n\nData goes to standard output, messages to standard error. The exit status is 0 for success, 1 " +
	"for failure, 2 for incorrect usage, and 3 if apply or audit verify finds records that differ."

func newParser(root *cli, version string) (*kong.Kong, error) {
	parser, err := kong.New(root,
		kong.Name("providerd"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.Help(printHelp),
		kong.NamedMapper("path", kong.MapperFunc(console.DecodePath)),
		kong.Vars{
			"operations": strings.Join(apply.Operations(), ","), "listed": strings.Join(apply.Operations(), ", "),
			"database": console.DefaultDatabase, "version": "providerd " + version + " " + runtime.Version(),
		},
	)
	if err != nil {
		return nil, fmt.Errorf("build command line: %w", err)
	}
	parser.Model.HelpFlag.Group = parser.Model.Flags[len(parser.Model.Flags)-1].Group
	return parser, nil
}
