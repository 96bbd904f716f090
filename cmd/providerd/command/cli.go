package command

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/doctor"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/server/contract"
)

type cli struct {
	Serve       serve.Command       `cmd:"" help:"Serve the API."`
	Token       tokenCommands       `cmd:"" help:"Create, list and revoke access tokens."`
	Provider    providerCommands    `cmd:"" help:"List, show, export and delete stored providers, and check them against best practice."`
	Application applicationCommands `cmd:"" help:"Create, list, link and delete the applications that providers are linked to."`
	Apply       apply.Command       `cmd:"" help:"Create the providers listed in YAML files, each exactly once however often it is run."`
	Key         keyCommands         `cmd:"" help:"Manage the keys that encrypt secrets at rest."`
	Audit       auditCommand        `cmd:"" help:"Show what was created and deleted, and what was done with tokens and keys."`
	Copy        copyCommand         `cmd:"" help:"Copy everything to another database, such as from SQLite to PostgreSQL."`
	Backup      backupCommand       `cmd:"" help:"Write a SQLite database to a file, also while the server runs, and verify it."`
	Restore     restoreCommand      `cmd:"" help:"Put a backup in the place of a SQLite database."`
	Doctor      doctor.Command      `cmd:"" help:"Look at all that a server needs, and say what is wrong with it."`
	Health      healthCommand       `cmd:"" help:"Ask the server on this machine whether it is ready."`
	Migrate     migrateCommand      `cmd:"" help:"Show or change the level of the database's schema."`
	Completion  completionCommand   `cmd:"" help:"Print a completion script for a shell."`
	Version     versionCommand      `cmd:"" help:"Print the version, and what the program is made of."`
	Man         manCommand          `cmd:"" hidden:"" help:"Print the manual page."`
	Help        helpCommand         `cmd:"" help:"Explain a command."`

	PrintVersion versionFlag `name:"version" help:"Print the version."`
	Quiet        bool        `short:"q" help:"Print only warnings and errors on standard error; a server logs nothing below warn."`
}

// helpCommand stands in the list of commands for what withHelpFlag does.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command to explain, such as token create."`
}

const description = "Provider configuration server: creates OAuth2 and workspace directory-sync providers over an " +
	"HTTP JSON API.\n\nData goes to standard output, messages to standard error. The exit status is 0 when done, 1 when " +
	"failed, 2 when misused."

func newParser(root *cli, operations []string) (*kong.Kong, error) {
	parser, err := kong.New(root,
		kong.Name("providerd"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
		kong.NamedMapper("path", kong.MapperFunc(flags.DecodePath)),
		kong.Vars{"operations": strings.Join(operations, ",")},
	)
	if err != nil {
		return nil, fmt.Errorf("build command line: %w", err)
	}
	return parser, nil
}

// checkServe lets the doctor read flags and variables as "serve" does.
func checkServe(contract *contract.Document) (doctor.Configuration, error) {
	parser, err := newParser(&cli{}, contract.OperationIDs())
	if err != nil {
		return doctor.Configuration{}, err
	}
	check := func(arguments []string) string {
		if _, err := parser.Parse(arguments); err != nil {
			return describeMisuse(err)
		}
		return ""
	}
	variables := []string{apply.TokenVariable}
	for _, command := range parser.Model.Leaves(false) {
		for _, flags := range command.AllFlags(false) {
			for _, flag := range flags {
				variables = append(variables, flag.Envs...)
			}
		}
	}
	return doctor.Configuration{Check: check, Variables: variables}, nil
}
