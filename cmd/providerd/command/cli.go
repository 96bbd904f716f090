package command

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/serve"
)

// cli has the commands. The output of those with the tag "report" only reports on a result: what they change, or what
// their exit status says. apply decides for itself.
type cli struct {
	Serve       serve.Command       `cmd:"" group:"Serve" help:"Serve the API until a signal arrives."`
	Migrate     migrateCommand      `cmd:"" group:"Serve" help:"Migrate the database to the schema version of this program."`
	Provider    providerCommands    `cmd:"" group:"Providers" help:"Create, list, show, update, delete and export providers."`
	Apply       apply.Command       `cmd:"" group:"Providers" help:"Create and change providers to match YAML files."`
	Application applicationCommands `cmd:"" group:"Providers" help:"Manage applications and their links to providers."`
	Token       tokenCommands       `cmd:"" group:"Access" help:"Create, list, renew and revoke access tokens."`
	Audit       auditCommands       `cmd:"" group:"Access" help:"Show, follow and verify the audit trail of providers, tokens and keys."`
	Key         keyCommands         `cmd:"" group:"Keys" help:"Manage the keys that encrypt secrets at rest."`
	Backup      backupCommand       `cmd:"" report:"" group:"Data" help:"Back up a SQLite database, and verify the backup."`
	Restore     restoreCommand      `cmd:"" group:"Data" help:"Restore a SQLite database from a backup."`
	Copy        copyCommand         `cmd:"" report:"" group:"Data" help:"Copy a database, for example from SQLite to PostgreSQL."`
	Doctor      doctorCommand       `cmd:"" report:"" group:"Diagnose" help:"Check configuration, files, database and disk."`
	Health      healthCommand       `cmd:"" report:"" group:"Diagnose" help:"Check whether the server on this host is ready."`
	Version     versionCommand      `cmd:"" group:"Diagnose" help:"Print the versions of the program and its parts."`
	Help        helpCommand         `cmd:"" group:"Help" help:"Show the help of a command."`
	Man         manCommand          `cmd:"" hidden:"" help:"Print the manual page."`
	Completion  completionCommand   `cmd:"" group:"Help" help:"Print a shell completion script."`

	PrintVersion kong.VersionFlag `name:"version" group:"Flags of all commands:" help:"Print the version."`
	Quiet        bool             `short:"q" group:"Flags of all commands:" help:"Print and log only warnings and errors."`
}

const description = "Provider configuration server: creates OAuth2 and workspace directory-sync providers over an " +
	"HTTP JSON API.\n\n\"providerd serve\" starts a server, and \"providerd help token create\" shows the help of a " +
	"command.\n\nData goes to standard output, messages to standard error. The exit status is 0 for success, 1 " +
	"for failure, 2 for incorrect usage, and 3 if apply or audit verify finds records that differ."

func newParser(root *cli) (*kong.Kong, error) {
	version, _ := builtFrom()
	parser, err := kong.New(root,
		kong.Name("providerd"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.Help(printHelp),
		kong.NamedMapper("path", kong.MapperFunc(console.DecodePath)),
		kong.Vars{
			"operations": strings.Join(apply.Operations(), ","), "listed": strings.Join(apply.Operations(), ", "),
			databaseFlag: console.DefaultDatabase, "version": "providerd " + version + " " + runtime.Version(),
		},
	)
	if err != nil {
		return nil, fmt.Errorf("build command line: %w", err)
	}
	parser.Model.HelpFlag.Group = parser.Model.Flags[len(parser.Model.Flags)-1].Group
	return parser, nil
}
