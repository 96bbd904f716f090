// Package apply is the command that makes the stored providers as YAML files say. Over HTTP, it creates each exactly
// once and reports those that differ; in a database, it also updates, renames and deletes. Package manifest reads the
// files, and the SDK in gen/client sends the requests.
//
// Start with Command.Run, which reads and checks the files. send.go creates over HTTP; database.go plans and writes.
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
)

// Command is "providerd apply" with its flags.
type Command struct {
	Files            []string            `name:"file" short:"f" sep:"none" placeholder:"FILE" help:"YAML file, directory of such files, or - for standard input; repeatable."`
	Recursive        bool                `short:"R" help:"Also read subdirectories, except hidden ones."`
	Server           string              `env:"PROVIDERD_SERVER" placeholder:"URL" help:"URL of the server, such as http://127.0.0.1:8080 (${env})."`
	TokenFile        string              `env:"PROVIDERD_TOKEN_FILE" type:"path" placeholder:"PATH" help:"File that contains the access token; overrides PROVIDERD_TOKEN (${env})."`
	DryRun           bool                `help:"Show the outcome of each entry and store nothing. Without --server and --as, only check the files."`
	DetailedExitcode bool                `help:"In a dry run, also exit with status 3 if entries would be created."`
	As               *console.Label      `placeholder:"NAME" help:"Write directly to the database as the caller NAME, which is the name of the tokens used to apply the files over HTTP."`
	Database         console.DatabaseURL `default:"${database}" env:"PROVIDERD_DATABASE" placeholder:"URL" help:"With --as, the database: sqlite:PATH or postgres://USER@HOST/DATABASE (${env}; default ${default})."`
	Keyset           string              `env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"With --as, the keyset file of the database (${env}; default keyset.json next to a SQLite database)."`
	Prune            int                 `placeholder:"N" help:"With --as, delete the records of NAME that have no entry; if there are more than N, write nothing."`
	Adopt            bool                `help:"With --as, take over any caller's records that have the client_id of an entry; this frees their idempotency keys."`
	Yes              bool                `help:"With --as, do not ask for confirmation. Required if stdin is not a terminal."`
	Strict           bool                `help:"Store nothing if there is advice for any entry."`
	Parallel         int                 `default:"16" placeholder:"N" help:"Number of parallel creates over HTTP, 1 to 256 (default ${default})."`
	Timeout          time.Duration       `default:"30s" placeholder:"TIME" help:"With --server, how long to wait for a response before retrying (default ${default})."`
	Output           string              `short:"o" default:"table" enum:"table,json" help:"Output format: ${enum} (default ${default}). The table omits unchanged entries, except in a dry run."`
	Schema           bool                `help:"Print the JSON Schema of the files, for completion in editors, and exit."`
	token            string
}

// TokenVariable is the environment variable with the access token.
const TokenVariable = "PROVIDERD_TOKEN"

const maxParallel = 256

// Help is the long help text.
func (*Command) Help() string {
	return "A file maps oauth2 and workspace_directory to lists of providers. Each has the fields of the API and an " +
		"id, by default its name. In values, ${NAME} is replaced by the value of the environment variable, ${file:PATH} " +
		"by the contents of the file, and $${ by ${. All files are checked before anything is sent. To change the id of " +
		"an entry, put the old id in its \"was\" field.\n\nWith --server, entries are created. Repeat runs create " +
		"nothing twice: entries already stored are left unchanged, and entries that were edited after they were created " +
		"are reported as drifted. The name of the token is the caller: always apply a file with tokens of the same name. " +
		"The server's certificate must be trusted by the system or by a certificate in the file SSL_CERT_FILE.\n\nWith " +
		"--as, an operator with access to the database makes the records of this caller match the files: entries are " +
		"created, and records are updated in place, renamed and, with --prune, deleted, in one transaction, once you " +
		"confirm the plan.\n\nIf a run is interrupted, run the command again. The exit status is 0 if every entry is " +
		"stored as specified in the files, 1 if something failed, and 3 if stored records differ from the files."
}

// AfterApply checks the database and its keyset.
func (c *Command) AfterApply(command *kong.Context) error {
	if c.As == nil {
		return nil
	}
	return c.connection().AfterApply(command)
}

func (c *Command) connection() console.DatabaseFlags {
	return console.DatabaseFlags{Database: c.Database, Keyset: c.Keyset}
}

// Validate refuses invalid or missing flags.
func (c *Command) Validate() error {
	if c.Schema {
		return nil
	}
	if err := c.readToken(); err != nil {
		return err
	}
	if err := c.checkFlags(); err != nil {
		return err
	}
	if c.As != nil && !c.DryRun {
		return console.ConsentFlag{Yes: c.Yes}.Validate()
	}
	if !c.needsServer() {
		return nil
	}
	if regexp.MustCompile(`://[^/]+/(docs|manual|problems|health|healthz|readyz|openapi)\b`).MatchString(c.Server) {
		return errors.New("--server is the URL of a page; pass only http://HOST:PORT or https://HOST")
	}
	// With a valid token, an error is about the URL.
	if _, err := client.New(c.Server, "x"); err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	_, err := c.providers()
	return err
}

// checkFlags refuses missing and invalid values, and flags that contradict each other.
func (c *Command) checkFlags() error {
	var broken []string
	isAsOnly := c.Prune != 0 || c.Adopt || c.Yes
	var pathError error
	for _, path := range c.Files {
		pathError = cmp.Or(pathError, console.CheckPath(path))
	}
	isUnseen := c.Output == console.FormatJSON && !c.Yes && !c.DryRun
	for _, rule := range []struct {
		isBroken bool
		message  string
	}{
		{len(c.Files) == 0, "pass --file=FILE"},
		{c.lacks(c.Server), "pass --server=URL, --as=NAME or --dry-run"},
		{c.lacks(c.token), TokenVariable + " is not set or empty: set it to an access token, or pass --token-file"},
		{c.hasPathAsToken(), TokenVariable + " is the path of a file; set " + TokenVariable + "_FILE instead"},
		{slices.Contains(c.Files, ""), "--file must not be empty"},
		{pathError != nil, fmt.Sprintf("--file: %v", pathError)},
		{strings.Contains(strings.Join(c.Files, "\n"), "://"), `--file takes paths, not URLs; run "curl --fail URL | ` +
			`providerd apply --file -"`},
		{c.As == nil && isAsOnly, "--prune, --adopt and --yes require --as, the name of the tokens used to apply the " +
			"files over HTTP"},
		{c.As != nil && c.Server != os.Getenv("PROVIDERD_SERVER"), "pass either --server or --as"},
		{c.As != nil && isUnseen, "--output json requires --yes or --dry-run"},
		{c.Prune != min(max(c.Prune, 0), maxChanges), fmt.Sprintf("--prune must be from 1 to %d", maxChanges)},
		{c.Parallel != min(max(c.Parallel, 1), maxParallel), fmt.Sprintf("--parallel must be from 1 to %d", maxParallel)},
		{c.Timeout <= 0, "--timeout must be longer than 0s"},
	} {
		if rule.isBroken {
			broken = append(broken, rule.message)
		}
	}
	if len(broken) > 0 {
		return errors.New(strings.Join(broken, "; "))
	}
	return nil
}

// needsServer reports whether requests are sent: in a dry run, only if --server is set.
func (c *Command) needsServer() bool { return c.As == nil && (c.Server != "" || !c.DryRun) }

// lacks reports whether a value is missing that requests need.
func (c *Command) lacks(value string) bool { return value == "" && c.needsServer() }

// hasPathAsToken reports whether the variable of the access token has the path of a file.
func (c *Command) hasPathAsToken() bool {
	_, err := os.Stat(c.token)
	return c.TokenFile == "" && c.needsServer() && (err == nil || strings.HasPrefix(c.token, "/"))
}

// Run creates the providers that the files list or, in a database, makes the records as the files say.
func (c *Command) Run(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) error {
	// Without a database or a server, the output is all there is.
	out.IsReport = !c.Schema && (c.As != nil || c.needsServer())
	if c.Schema {
		text, err := manifest.Schema(manifestKinds(contract))
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	report := &report{Command: c, out: out, messages: messages}
	switch err := report.read(ctx, contract); {
	case err != nil:
		return err
	case c.As != nil:
		return c.connection().WithStore(ctx, func(database *store.Store) error {
			return report.runInDatabase(ctx, database, contract)
		})
	case c.needsServer():
		return report.runOverHTTP(ctx)
	default:
		return report.runAlone()
	}
}

// runAlone prints the entries, whose outcomes only a server knows.
func (r *report) runAlone() error {
	for i := range r.applied {
		r.applied[i].Outcome = outcomeValid
	}
	report := r.messages.Note
	if r.messages.IsQuiet {
		// Otherwise this run would look like one that compared the entries.
		report = r.messages.Warn
	}
	report("checked %s without a server; pass --server or --as to see what would change",
		console.Count(len(r.applied), "entry", "entries"))
	return r.print()
}

func (r *report) runOverHTTP(ctx context.Context) error {
	// Before anything is sent, a signal ends the program immediately; afterward, a second one does.
	ctx, stop := console.UntilInterrupted(ctx)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	to, err := r.providers()
	if err != nil {
		return err
	}
	ended := r.send(ctx, to)
	if err := r.print(); err != nil {
		return err
	}
	err = r.finish()
	if err != nil && ended != nil {
		return fmt.Errorf("%s; %w", err.Error(), ended)
	}
	return errors.Join(err, ended)
}

// read reads the entries of the files, or prints all problems of the files.
func (r *report) read(ctx context.Context, contract *contract.Document) error {
	console.KeepHeapSmall()
	inputs, unread, err := readFiles(r.Files, r.Recursive)
	if err != nil {
		return err
	}
	if unread != "" && r.Prune > 0 {
		return fmt.Errorf("--prune: %s was not read, so its records would be deleted; pass --recursive to read "+
			"subdirectories, or move it to another directory", unread)
	}
	values := manifest.Values{Variable: os.LookupEnv, File: files.ReadInput}
	list := manifest.Read(inputs, manifestKinds(contract), values)
	problems := findProblems(ctx, contract, list)
	if len(problems) == 0 {
		for _, path := range list.OutsideFiles {
			r.messages.Note("read %s, which is outside the directory of the files", path)
		}
		return r.add(list.Entries)
	}
	if err := r.printProblems(problems); err != nil {
		return err
	}
	sum := fmt.Sprintf("%s in %s", console.Count(len(problems), "problem"), console.Count(len(inputs), "file"))
	if len(problems) == manifest.MaxProblems {
		sum = "at least " + sum
	}
	return errors.New(sum + "; nothing was stored")
}

func (c *Command) providers() (*client.Providers, error) {
	return client.New(c.Server, c.token, client.WithTryTimeout(c.Timeout))
}

// readToken reads the access token from the file or the environment variable.
func (c *Command) readToken() error {
	c.token = os.Getenv(TokenVariable)
	if c.TokenFile == "" || !c.needsServer() {
		return nil
	}
	text, err := files.ReadInput(c.TokenFile)
	if err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	if c.token = strings.TrimSpace(files.Text(text)); c.token == "" {
		return fmt.Errorf("--token-file: %s is empty; write an access token into it", c.TokenFile)
	}
	return nil
}
