// Package doctor is the command that looks at all that a server needs, and says what is wrong with it. It changes
// nothing.
//
// Start with Command.Run; finding.go has what a check returns, and each other file the checks of one thing.
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
	Database examinedURL  `default:"sqlite:data/providerd.db" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database, sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   examinedPath `env:"PROVIDERD_KEYSET" placeholder:"PATH" help:"The file with the keys of the database (${env}; default keyset.json beside a SQLite database)."`
	TLSCert  examinedPath `env:"PROVIDERD_TLS_CERT" placeholder:"PATH" help:"Certificate chain in PEM that the server shows (${env})."`
	TLSKey   examinedPath `env:"PROVIDERD_TLS_KEY" placeholder:"PATH" help:"Private key of the certificate in PEM (${env})."`
	flags.ListFormat
}

// Help is the long help text.
func (Command) Help() string {
	return "Looks at the configuration, the files, the keyset, the database and what it lies on, also while a server " +
		"runs, and says of each whether it is ok, or what to do. It changes nothing, makes no file and takes no lock that " +
		"others wait for. Run it as the user and with the environment of the server. The exit status is 1 when " +
		"something failed, and 0 when there are at most warnings."
}

// AfterApply refuses what is wrong with a flag that was given, which is a misuse of the doctor. A variable is also the
// server's.
func (c *Command) AfterApply(command *kong.Context) error {
	for _, element := range command.Path {
		if element.Flag == nil {
			continue
		}
		examined, ok := reflect.TypeAssert[interface{ check() error }](element.Flag.Target)
		if !ok {
			continue
		}
		if err := examined.check(); err != nil {
			return fmt.Errorf("--%s: %w", element.Flag.Name, err)
		}
	}
	return c.Database.CheckHidden("database", command.Args)
}

// Run looks at all there is. What fails keeps no checks from being made but those that need it.
func (c *Command) Run(
	ctx context.Context, configuration Configuration, out *console.Output, say *console.Messages,
) error {
	findings := slices.Concat(
		checkConfiguration(configuration, c.serveLine()), checkCertificate(c.TLSCert.path, c.TLSKey.path),
		c.checkDatabase(ctx))
	table := console.List[finding]{
		Headings: "STATUS,CHECK,FINDING", Rows: finding.cells, Value: func(found finding) any { return found },
	}
	if err := table.Print(out, say, c.Output, console.Each(findings...)); err != nil {
		return err
	}
	failures := 0
	for _, found := range findings {
		if found.Status == healthFail {
			failures++
		}
	}
	if failures > 0 {
		return errors.New(console.Count(failures, "check has", "checks have") + " failed")
	}
	return nil
}

// checkDatabase looks at the database, and at what is in it, where its place is told as it should be. Otherwise
// checkConfiguration says what is wrong.
func (c *Command) checkDatabase(ctx context.Context) []finding {
	keyset := c.Keyset.path
	switch {
	case c.Database.fault != nil:
		return append(checkKeysetFile(keyset, userOf(keyset)), checkKeysetAlone(keyset)...)
	case flags.CheckPlaces(c.Database.DatabaseURL, keyset, "") != nil:
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

// serveLine is how the server would be started. What comes from the environment is left to it: a password must not be
// in an argument.
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
