package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

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

// health is how good what a check found is.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn"
	healthFail health = "fail"
)

// finding is what one check found.
type finding struct {
	Check  string `json:"check"`
	Status health `json:"status"`
	// Finding says what is so, and Remedy what to do about it; "" where it is ok.
	Finding string `json:"finding"`
	Remedy  string `json:"remedy"`
}

func passed(check, format string, values ...any) finding {
	return finding{Check: check, Status: healthOK, Finding: fmt.Sprintf(format, values...)}
}

func (f finding) but(status health, remedy string) finding {
	f.Status, f.Remedy = status, remedy
	return f
}

func warned(check, remedy, format string, values ...any) finding {
	return passed(check, format, values...).but(healthWarn, remedy)
}

func failed(check, remedy, format string, values ...any) finding {
	return passed(check, format, values...).but(healthFail, remedy)
}

// failedBy is failed for an error, with what explain knows to do about it.
func failedBy(check string, err error) finding {
	return finding{Check: check, Status: healthFail, Finding: err.Error(), Remedy: console.RemedyFor(err)}
}

func (f finding) cells() [][]string {
	text := f.Finding
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return [][]string{{string(f.Status), f.Check, text}}
}

// Run looks at all there is. What fails keeps no checks from being made but those that need it.
func (c *Command) Run(ctx context.Context, configuration Configuration, out *console.Output, say *console.Messages) error {
	findings := slices.Concat(
		c.checkConfiguration(configuration), checkCertificate(c.TLSCert.path, c.TLSKey.path), c.checkDatabase(ctx))
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
