package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

// doctorCommand takes any value, because one that "serve" would refuse is a finding.
type doctorCommand struct {
	Database string `default:"${database}" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"The database: sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset   string `env:"PROVIDERD_KEYSET" placeholder:"PATH" help:"Keyset file of the database (${env}; default keyset.json next to a SQLite database)."`
	TLSCert  string `env:"PROVIDERD_TLS_CERT" placeholder:"PATH" help:"PEM certificate chain of the server (${env}; default none)."`
	TLSKey   string `env:"PROVIDERD_TLS_KEY" placeholder:"PATH" help:"PEM private key of the certificate (${env}; default none)."`
	flags.ListFormat
}

const (
	checkConfiguration = "configuration"
	// databaseFlag is the flag and its check.
	databaseFlag = "database"
	checkKeyset  = "keyset"
	// expiryNotice is how long before their expiry tokens and certificates are warned of.
	expiryNotice = 14 * flags.Day
	// postgresTimeout is how long the checks of a server may take.
	postgresTimeout = 10 * time.Second
)

// Help is the long help text.
func (doctorCommand) Help() string {
	return "Checks the configuration, files, keyset, database and disk, and reports what is wrong and what to do. It " +
		"can run next to a server: it changes nothing, creates no file and takes no lock that others wait for. Run it as " +
		"the server's user, with the server's environment. The exit status is 1 if a check failed, and 0 if there are only " +
		"warnings."
}

// AfterApply refuses an invalid flag; an invalid variable is a finding, because it is also the server's.
func (c *doctorCommand) AfterApply(command *kong.Context) error {
	var url flags.DatabaseURL
	urlErr := url.UnmarshalText([]byte(c.Database))
	for _, element := range command.Path {
		switch {
		case element.Flag == nil:
		case element.Flag.Name == databaseFlag && urlErr != nil:
			return fmt.Errorf("--database: %w", urlErr)
		case strings.HasSuffix(element.Flag.PlaceHolder, "PATH") && element.Flag.Target.String() == "":
			return fmt.Errorf("--%s: must not be empty", element.Flag.Name)
		}
	}
	if urlErr != nil {
		return nil //nolint:nilerr // It is a finding.
	}
	return url.CheckPassword(databaseFlag, command.Args)
}

// Run makes every check, except those that depend on one that failed.
func (c *doctorCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	found := &findings{}
	if err := c.configuration(found); err != nil {
		return err
	}
	for _, path := range []*string{&c.Keyset, &c.TLSCert, &c.TLSKey} {
		if *path != "" {
			*path = kong.ExpandPath(*path)
		}
	}
	if c.TLSCert != "" && c.TLSKey != "" {
		found.certificate(c.TLSCert, c.TLSKey)
	}
	c.database(ctx, found)
	table := console.List[finding]{
		Headings: "STATUS,CHECK,FINDING", Rows: finding.cells, Color: finding.color,
	}
	if err := table.Print(out, messages, c.Output, console.Values(*found...)); err != nil {
		return err
	}
	*found = slices.DeleteFunc(*found, func(f finding) bool { return f.Status != healthFail })
	if len(*found) > 0 {
		return errors.New(console.Count(len(*found), "check") + " failed")
	}
	return nil
}

// configuration parses the flags and the environment as "serve" would. Values of variables stay in the environment,
// because a password must not be in an argument.
func (c *doctorCommand) configuration(found *findings) error {
	parser, err := newParser(&cli{})
	if err != nil {
		return err
	}
	line := []string{"serve"}
	for _, flag := range [][3]string{
		{"--database", "PROVIDERD_DATABASE", c.Database},
		{"--keyset", "PROVIDERD_KEYSET", c.Keyset},
		{"--tls-cert", "PROVIDERD_TLS_CERT", c.TLSCert},
		{"--tls-key", "PROVIDERD_TLS_KEY", c.TLSKey},
	} {
		if flag[2] != "" && flag[2] != os.Getenv(flag[1]) {
			line = append(line, flag[0]+"="+flag[2])
		}
	}
	problems := invalidVariables(parser, nil)
	if _, err := parser.Parse(line); err != nil && !slices.Contains(problems, describeUsageError(err)) {
		problems = append(problems, describeUsageError(err))
	}
	for _, problem := range problems {
		found.fail(checkConfiguration, "%s; correct the variable or flag", problem)
	}
	for _, warning := range unknownVariables(parser) {
		found.warn(checkConfiguration, "%s", warning)
	}
	if _, err := serve.TraceEndpoint(); err != nil {
		found.warn(checkConfiguration, "traces are not exported: %v", err)
	}
	if len(*found) == 0 {
		found.ok(checkConfiguration, "flags and environment variables are valid")
	}
	return nil
}

// certificate checks the certificate that the server would present.
func (f *findings) certificate(certPath, keyPath string) {
	const check, renew = "certificate", "; renew it, and the server reloads it"
	pair, err := serve.LoadCertificate(certPath, keyPath)
	if err != nil {
		f.err(check, err)
		return
	}
	begins, ends := pair.Leaf.NotBefore, pair.Leaf.NotAfter
	switch left := time.Until(ends); {
	case time.Now().Before(begins):
		f.fail(check, "%s is not valid before %s; check the system clock", certPath, console.Timestamp(begins))
	case left <= 0:
		f.fail(check, "%s expired at %s"+renew, certPath, console.Timestamp(ends))
	case left < expiryNotice:
		f.warn(check, "%s expires at %s"+renew, certPath, console.Timestamp(ends))
	default:
		f.ok(check, "%s is valid until %s", certPath, console.Timestamp(ends))
	}
	const everyUser = 0o007
	if info, err := os.Stat(keyPath); err == nil && info.Mode().Perm()&everyUser != 0 {
		f.fail(check, "every user can read the private key %s; run chmod 600 on it, and get a certificate for a new key",
			keyPath)
	}
}

// database checks the database, its files and its content. configuration has reported an invalid URL.
func (c *doctorCommand) database(ctx context.Context, found *findings) {
	var url flags.DatabaseURL
	if err := url.UnmarshalText([]byte(c.Database)); err != nil {
		found.keysetFile(c.Keyset, userOf(c.Keyset))
		found.keysetAlone(c.Keyset)
		return
	}
	if flags.CheckDistinctPaths(url, c.Keyset, "") != nil {
		return
	}
	keyset := cmp.Or(c.Keyset, url.DefaultKeyset())
	open := found.openPostgreSQL
	if url.Path() != "" {
		open = found.openSQLite
	}
	view, err := open(ctx, url, keyset)
	if err != nil {
		found.err(databaseFlag, err)
		if !errors.Is(err, database.ErrNoDatabase) {
			found.keysetAlone(keyset)
		}
		return
	}
	defer func() { _ = view.Close() }()
	if !found.schema(ctx, view) {
		found.keysetAlone(keyset)
		return
	}
	inspection := store.Inspect(view)
	if keyset != "" {
		found.keyset(ctx, inspection, keyset)
	}
	found.tokens(ctx, inspection)
}

func (f *findings) openSQLite(ctx context.Context, url flags.DatabaseURL, keyset string) (database.View, error) {
	path, dir := url.Path(), url.Dir()
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if _, err := os.Stat(dir); err == nil {
		f.files(path, dir, keyset)
	}
	view, err := sqlite.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	use := map[bool]string{true: "in use by another program", false: "not in use"}
	f.ok(databaseFlag, "%s is %s", path, use[view.IsInUse()])
	if err := view.CheckIntegrity(ctx); err != nil {
		f.fail("integrity", "%v; restore a backup", err)
	} else {
		f.ok("integrity", "SQLite finds each page, row and index intact")
	}
	return view, nil
}
