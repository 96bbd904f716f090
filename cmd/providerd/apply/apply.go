// Package apply is the command that makes the stored providers as YAML files say. Over HTTP, it creates each exactly
// once and reports those that differ; in a database, it also updates, renames and deletes. Package manifest reads the
// files, and the SDK in gen/client sends the requests.
//
// Start with Command.Run, which reads and checks the files. send.go creates over HTTP; database.go plans and writes.
package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
)

// Command is "providerd apply" with its flags.
type Command struct {
	Files            []string `name:"file" short:"f" sep:"none" placeholder:"FILE" help:"A YAML file that lists providers, a directory of such files, or - for standard input; repeatable."`
	Recursive        bool     `short:"R" help:"Also read the subdirectories of directories, except hidden ones."`
	Server           string   `env:"PROVIDERD_SERVER" placeholder:"URL" help:"URL of the server, such as http://127.0.0.1:8080 (${env})."`
	TokenFile        string   `env:"PROVIDERD_TOKEN_FILE" type:"path" placeholder:"PATH" help:"File with the access token, which overrides PROVIDERD_TOKEN (${env})."`
	DryRun           bool     `help:"Show the outcome of each entry and store nothing. Without --server and --as, only check the files."`
	DetailedExitcode bool     `help:"In a dry run, exit with status 3 also if entries would be created."`
	databaseFlags
	Strict   bool          `help:"Store nothing if there is advice for any entry."`
	Parallel int           `default:"16" placeholder:"N" help:"Number of parallel creates, 1 to 256 (default ${default})."`
	Timeout  time.Duration `default:"30s" placeholder:"TIME" help:"Time after which a request to --server is retried (default ${default})."`
	Output   string        `short:"o" default:"table" enum:"table,json" help:"Output format: ${enum} (default ${default}). The table omits unchanged entries, except in a dry run."`
	Schema   bool          `help:"Print the JSON Schema of the files, for completion in editors, and exit."`

	// token is the access token.
	token string
}

// ErrDiffers means that nothing failed, but stored records differ from the files. With --detailed-exitcode,
// a dry run also returns it if entries would be created.
var ErrDiffers = errors.New("stored records differ from the files")

// TokenVariable is the environment variable with the access token.
const TokenVariable = "PROVIDERD_TOKEN"

// serverVariable is the environment variable with the URL of the server.
const serverVariable = "PROVIDERD_SERVER"

const maxParallel = 256

// Help is the long help text.
func (*Command) Help() string {
	return "A file maps oauth2 and workspace_directory to lists of providers. Each has the fields of the API and an id, " +
		"by default its name. In values, ${NAME} is replaced by the environment variable, ${file:PATH} by the text of the " +
		"file, and $${ by ${. All files are checked before anything is sent. To rename an entry, give it a new id, and the " +
		"old one as was.\n\nWith --server, entries are created. Repeat runs create nothing twice: stored entries are " +
		"unchanged, and entries that were edited since are reported as drifted. The name of the token is the caller: " +
		"always apply a file with tokens of the same name. The server's certificate must be trusted by the system or by a " +
		"certificate in the file SSL_CERT_FILE.\n\nWith --as, an operator who has the database makes the records of this " +
		"caller as the files say: entries are created, and records are updated in place, renamed and, with --prune, " +
		"deleted, once you confirm the plan.\n\nIf a run is interrupted, run the command again. The exit status is 0 if " +
		"every entry is stored as the files say, 1 if something failed, and 3 if stored records differ from the files."
}

// Validate refuses invalid or missing flags.
func (c *Command) Validate() error {
	if c.Schema {
		return nil
	}
	if slices.Contains(c.Files, "") {
		return errors.New("--file must not be empty")
	}
	if err := c.readToken(); err != nil {
		return err
	}
	if err := c.findMissing(); err != nil {
		return err
	}
	if err := c.validate(c.Server, c.Output, c.DryRun); err != nil {
		return err
	}
	if c.Parallel < 1 || c.Parallel > maxParallel {
		return fmt.Errorf("--parallel must be from 1 to %d", maxParallel)
	}
	if c.Timeout <= 0 {
		return errors.New("--timeout must be longer than 0s")
	}
	if !c.needsServer() {
		return nil
	}
	// With a valid token, an error is about the URL.
	if _, err := client.New(c.Server, "x"); err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	_, err := c.providers()
	return err
}

// needsServer reports whether requests are sent: in a dry run, only if --server is set.
func (c *Command) needsServer() bool { return !c.writesDatabase() && (c.Server != "" || !c.DryRun) }

// findMissing returns an error that names everything that is missing.
func (c *Command) findMissing() error {
	var flags, all []string
	if len(c.Files) == 0 {
		flags = append(flags, "--file=FILE")
	}
	if c.Server == "" && c.needsServer() {
		flags = append(flags, "--server=URL")
	}
	if len(flags) > 0 {
		all = append(all, "missing flags: "+strings.Join(flags, ", "))
	}
	if c.needsServer() && c.token == "" {
		all = append(all, "set "+TokenVariable+" to an access token, or pass --token-file")
	}
	if len(all) > 0 {
		return errors.New(strings.Join(all, "; "))
	}
	return nil
}

// Run creates the providers that the files list or, in a database, makes the records as the files say.
func (c *Command) Run(
	ctx context.Context, contract *contract.Document, out *console.Output,
	messages *console.Messages,
) error {
	if c.Schema {
		return printSchema(out, contract)
	}
	entries, err := c.read(ctx, contract, out, messages)
	if err != nil {
		return err
	}
	report, err := newReport(c, messages, entries)
	if err != nil {
		return err
	}
	if advised := report.printAdvice(); advised > 0 && c.Strict {
		return report.refuseAdvised(out, advised)
	}
	if c.writesDatabase() {
		return c.connection().WithStore(ctx, func(database *store.Store) error {
			run := databaseRun{c, database, contract, entries, out, messages}
			return run.run(ctx)
		})
	}
	if !c.needsServer() {
		return report.printEntries(out)
	}
	// Before anything is sent, a signal ends the program at once; afterwards, a second one does.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	ended := c.send(ctx, report)
	if err := report.print(out); err != nil && ended != nil {
		messages.Error(fmt.Errorf("%w; %w", err, ended))
		return console.ErrReported
	} else if err != nil {
		return err
	}
	return ended
}

// send creates the entries or, in a dry run, validates them.
func (c *Command) send(ctx context.Context, report *report) error {
	providers, err := c.providers()
	if err != nil {
		return err
	}
	c.warnOfPlainHTTP(report.messages)
	if !c.DryRun {
		return report.send(ctx, providers, c.Parallel, (*applied).create)
	}
	return report.send(ctx, providers, c.Parallel, (*applied).validate)
}

func printSchema(out *console.Output, contract *contract.Document) error {
	text, err := manifest.Schema(manifestKinds(contract))
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// read returns the entries of the files, or prints all problems of the files.
func (c *Command) read(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) ([]manifest.Entry, error) {
	flags.KeepHeapSmall()
	inputs, err := readFiles(c.Files, c.Recursive)
	if err != nil {
		return nil, err
	}
	values := manifest.Values{Variable: os.LookupEnv, File: files.ReadSmall}
	list := manifest.Read(inputs, manifestKinds(contract), values)
	problems, err := findProblems(ctx, contract, list)
	if err != nil {
		return nil, err
	}
	if len(problems) == 0 {
		for _, path := range list.OutsideFiles {
			messages.Note("read %s, which is outside the directory of the files", path)
		}
		return list.Entries, nil
	}
	if err := printProblems(out, messages, c.Output, problems); err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%s in %s", console.Count(len(problems), "problem"), console.Count(len(inputs), "file"))
	if len(problems) == manifest.MaxProblems {
		sum = "at least " + sum
	}
	return nil, errors.New(sum + "; nothing was stored")
}

// providers returns the client.
func (c *Command) providers() (*client.Providers, error) {
	return client.New(c.Server, c.token, client.WithTryTimeout(c.Timeout))
}

// warnOfPlainHTTP warns if requests leave this host unencrypted.
func (c *Command) warnOfPlainHTTP(messages *console.Messages) {
	server, err := url.Parse(c.Server)
	if err != nil || server.Scheme != "http" || server.Hostname() == "localhost" {
		return
	}
	if ip := net.ParseIP(server.Hostname()); ip == nil || !ip.IsLoopback() {
		messages.Warn("the token and secrets are sent to %s unencrypted; use https", server.Host)
	}
}

// readToken reads the access token from the file or the environment variable.
func (c *Command) readToken() error {
	c.token = strings.TrimSpace(os.Getenv(TokenVariable))
	if c.TokenFile == "" || !c.needsServer() {
		return nil
	}
	text, err := files.ReadSmall(c.TokenFile)
	if err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	if c.token = strings.TrimSpace(string(text)); c.token == "" {
		return fmt.Errorf("--token-file: %s is empty", c.TokenFile)
	}
	return nil
}
