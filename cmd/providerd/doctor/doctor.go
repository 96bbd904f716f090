// Package doctor implements "providerd doctor", which checks what a server needs and reports problems. It changes
// nothing.
//
// Start with Command.Run. finding.go has the result of a check, and each other file the checks of one thing.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

// Command has the flags of "providerd doctor".
type Command struct {
	Database uncheckedURL  `default:"${database}" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database: sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   uncheckedPath `env:"PROVIDERD_KEYSET" placeholder:"PATH" help:"Keyset file of the database (${env}; default keyset.json next to a SQLite database)."`
	TLSCert  uncheckedPath `env:"PROVIDERD_TLS_CERT" placeholder:"PATH" help:"PEM certificate chain of the server (${env}; default none)."`
	TLSKey   uncheckedPath `env:"PROVIDERD_TLS_KEY" placeholder:"PATH" help:"PEM private key of the certificate (${env}; default none)."`
	flags.ListFormat
}

// Help is the long help text.
func (Command) Help() string {
	return "Checks the configuration, files, keyset, database and disk, and reports what is wrong and what to do. It " +
		"can run beside a server: it changes nothing, creates no file and takes no lock that others wait for. Run it as " +
		"the server's user, with the server's environment. The exit status is 1 if a check failed, and 0 if there are only " +
		"warnings."
}

// AfterApply returns the error of an invalid flag. An invalid variable is a finding instead, because it is also the
// server's.
func (c *Command) AfterApply(command *kong.Context) error {
	for _, element := range command.Path {
		if element.Flag == nil {
			continue
		}
		value, ok := reflect.TypeAssert[interface{ check() error }](element.Flag.Target)
		if !ok {
			continue
		}
		if err := value.check(); err != nil {
			return fmt.Errorf("--%s: %w", element.Flag.Name, err)
		}
	}
	return c.Database.CheckPassword("database", command.Args)
}

// Run makes every check, except those that depend on one that failed.
func (c *Command) Run(
	ctx context.Context, configuration Configuration, out *console.Output, messages *console.Messages,
) error {
	findings := slices.Concat(
		checkConfiguration(configuration, c.serveLine()), checkCertificate(c.TLSCert.path, c.TLSKey.path),
		c.checkDatabase(ctx))
	table := console.List[finding]{
		Headings: "STATUS,CHECK,FINDING", Rows: finding.cells, Value: func(found finding) any { return found },
		Color: finding.color,
	}
	if err := table.Print(out, messages, c.Output, console.Values(findings...)); err != nil {
		return err
	}
	failures := 0
	for _, found := range findings {
		if found.Status == healthFail {
			failures++
		}
	}
	if failures > 0 {
		return errors.New(console.Count(failures, "check") + " failed")
	}
	return nil
}

// checkDatabase checks the database and its content. If its URL is invalid, checkConfiguration has reported that.
func (c *Command) checkDatabase(ctx context.Context) []finding {
	keyset := c.Keyset.path
	switch {
	case c.Database.fault != nil:
		return append(checkKeysetFile(keyset, userOf(keyset)), checkKeysetAlone(keyset)...)
	case flags.CheckDistinctPaths(c.Database.DatabaseURL, keyset, "") != nil:
		return nil
	}
	keyset = cmp.Or(keyset, c.Database.DefaultKeyset())
	switch at := c.Database.Location.(type) {
	case flags.SQLiteFile:
		return checkSQLite(ctx, at, keyset)
	case flags.PostgresURL:
		return checkPostgreSQL(ctx, at.URL, keyset)
	default:
		return nil
	}
}

// serveLine returns the arguments that would start the server. It leaves values of variables to the environment,
// because a password must not be in an argument.
func (c *Command) serveLine() []string {
	line := []string{"serve"}
	for _, flag := range []struct{ name, variable, value string }{
		{"--database", "PROVIDERD_DATABASE", c.Database.Text},
		{"--keyset", "PROVIDERD_KEYSET", c.Keyset.path},
		{"--tls-cert", "PROVIDERD_TLS_CERT", c.TLSCert.path},
		{"--tls-key", "PROVIDERD_TLS_KEY", c.TLSKey.path},
	} {
		if flag.value != "" && flag.value != os.Getenv(flag.variable) {
			line = append(line, flag.name+"="+flag.value)
		}
	}
	return line
}
