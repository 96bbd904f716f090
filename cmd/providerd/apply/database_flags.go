package apply

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

// databaseFlags are the flags of a run that writes to the database.
type databaseFlags struct {
	As       *flags.Label      `placeholder:"NAME" help:"Write to the database instead of sending requests. NAME is the name of the tokens that the files are applied with over HTTP."`
	Database flags.DatabaseURL `default:"${database}" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"With --as, the database: sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   string            `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"With --as, the keyset file of the database (${env}; default keyset.json beside a SQLite database)."`
	Prune    pruneFlag         `help:"With --as, delete the records that were applied as NAME and have no entry. --prune=N deletes at most N; with --yes, N is required."`
	Verbose  bool              `help:"With --as, list the records that were applied as NAME and have no entry."`
	flags.ConsentFlag
}

// writesDatabase reports whether the run writes to the database.
func (f *databaseFlags) writesDatabase() bool { return f.As != nil }

// connection returns the flags that open the database.
func (f *databaseFlags) connection() flags.DatabaseFlags {
	return flags.DatabaseFlags{Database: f.Database, Keyset: f.Keyset}
}

// AfterApply checks the database and its keyset.
func (f *databaseFlags) AfterApply(command *kong.Context) error {
	if !f.writesDatabase() {
		return nil
	}
	return f.connection().AfterApply(command)
}

// isDatabasePassed reports whether the database or its keyset was passed as an argument.
func (f *databaseFlags) isDatabasePassed() bool {
	return f.Database.Text != cmp.Or(os.Getenv("PROVIDERD_DATABASE"), flags.DefaultDatabase) ||
		f.Keyset != "" && os.Getenv("PROVIDERD_KEYSET") == ""
}

// validate refuses flags that contradict each other.
func (f *databaseFlags) validate(server, output string, isDryRun bool) error {
	if f.writesDatabase() {
		return f.validateUse(server, output, isDryRun)
	}
	if f.isDatabasePassed() || f.Prune.isSet || f.Verbose || f.Yes {
		return errors.New("--database, --keyset, --prune, --verbose and --yes require --as, " +
			"the name of the tokens that the files are applied with over HTTP")
	}
	return nil
}

// validateUse refuses flags that contradict --as.
func (f *databaseFlags) validateUse(server, output string, isDryRun bool) error {
	switch {
	case server != os.Getenv(serverVariable):
		return errors.New("pass either --server or --as")
	case f.Prune.isSet && f.Yes && f.Prune.limit == 0:
		return errors.New("with --yes, --prune requires the largest number of records that it can delete, as in --prune=3")
	case isDryRun:
		return nil
	case output == console.FormatJSON && !f.Yes:
		return errors.New("--output json requires --yes or --dry-run")
	default:
		return f.Validate()
	}
}

// pruneFlag is the flag --prune with an optional number.
type pruneFlag struct {
	isSet bool
	// limit is the largest number of records to delete; 0 if the user decides.
	limit int
}

// Decode parses the number.
func (p *pruneFlag) Decode(at *kong.DecodeContext) error {
	p.isSet = true
	if at.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	limit, err := strconv.Atoi(at.Scan.Pop().String())
	if err != nil || limit < 1 || limit > maxOrphans {
		return fmt.Errorf("must be a number from 1 to %d", maxOrphans)
	}
	p.limit = limit
	return nil
}

// IsBool tells the parser that the number can be omitted.
func (*pruneFlag) IsBool() bool { return true }
