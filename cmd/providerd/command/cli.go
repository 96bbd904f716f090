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
	Serve       serve.Command       `cmd:"" help:"Serve the API until a signal arrives."`
	Token       tokenCommands       `cmd:"" help:"Create, list and revoke access tokens."`
	Provider    providerCommands    `cmd:"" help:"List, show, check, export and delete stored providers."`
	Application applicationCommands `cmd:"" help:"Manage applications and their links to providers."`
	Apply       apply.Command       `cmd:"" help:"Create, update, rename and delete providers as YAML files say; repeat runs change nothing."`
	Key         keyCommands         `cmd:"" help:"Manage the keys that encrypt secrets at rest."`
	Audit       auditCommand        `cmd:"" help:"Show the audit trail of providers, tokens and keys."`
	Copy        copyCommand         `cmd:"" help:"Copy a database to an empty one, such as from SQLite to PostgreSQL."`
	Backup      backupCommand       `cmd:"" help:"Back up a SQLite database, even while the server runs, and verify the backup."`
	Restore     restoreCommand      `cmd:"" help:"Restore a SQLite database from a backup."`
	Doctor      doctor.Command      `cmd:"" help:"Check configuration, files, database and disk; report problems."`
	Health      healthCommand       `cmd:"" help:"Check whether the server on this host is ready."`
	Migrate     migrateCommand      `cmd:"" help:"Show or migrate the schema of the database."`
	Completion  completionCommand   `cmd:"" help:"Print a shell completion script."`
	Version     versionCommand      `cmd:"" help:"Print the versions of the program and of what it contains."`
	Man         manCommand          `cmd:"" hidden:"" help:"Print the manual page."`
	Help        helpCommand         `cmd:"" help:"Show the help of a command."`

	PrintVersion versionFlag `name:"version" help:"Print the version."`
	Quiet        bool        `short:"q" help:"Print only warnings and errors on standard error; serve logs nothing below warn."`
}

// helpCommand lists "help" among the commands; withHelpFlag implements it.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command, such as token create."`
}

const description = "Provider configuration server: creates OAuth2 and workspace directory-sync providers over an " +
	"HTTP JSON API.\n\nData goes to standard output, messages to standard error. The exit status is 0 for success, 1 " +
	"for failure, 2 for incorrect usage, and 3 if apply finds stored records that differ."

func newParser(root *cli, operations []string) (*kong.Kong, error) {
	parser, err := kong.New(root,
		kong.Name("providerd"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
		kong.NamedMapper("path", kong.MapperFunc(flags.DecodePath)),
		kong.Vars{"operations": strings.Join(operations, ","), "database": flags.DefaultDatabase},
	)
	if err != nil {
		return nil, fmt.Errorf("build command line: %w", err)
	}
	return parser, nil
}

// checkServe lets doctor parse flags and variables as "serve" does.
func checkServe(contract *contract.Document) (doctor.Configuration, error) {
	parser, err := newParser(&cli{}, contract.OperationIDs())
	if err != nil {
		return doctor.Configuration{}, err
	}
	check := func(arguments []string) string {
		if _, err := parser.Parse(arguments); err != nil {
			return describeUsageError(err)
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
