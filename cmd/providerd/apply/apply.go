// Package apply is the command that creates the providers that files list, each exactly once. The files themselves are
// read in manifest, and what is sent goes through the SDK in gen/client.
//
// Start with Command.Run, which reads and checks the files, sends their entries and reports what became of them.
package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/contract"
)

// Command has the flags of "providerd apply".
type Command struct {
	Files    []string      `name:"file" short:"f" sep:"none" placeholder:"FILE" help:"A YAML file that lists providers, a folder of such files, or - for standard input; may be given several times."`
	Server   string        `env:"PROVIDERD_SERVER" placeholder:"URL" help:"The server, such as http://127.0.0.1:8080 (${env}). The access token comes from PROVIDERD_TOKEN."`
	DryRun   bool          `help:"Show what would become of each entry, and store nothing. Without --server, the files alone are checked."`
	Strict   bool          `help:"Send nothing where there is advice for an entry."`
	Parallel int           `default:"16" placeholder:"N" help:"Requests at a time, 1 to 256 (default ${default})."`
	Timeout  time.Duration `default:"30s" placeholder:"TIME" help:"How long a request may take before it is sent again (default ${default})."`
	Output   string        `default:"table" enum:"table,json" help:"Format of the output: ${enum} (default ${default}). The table leaves out what is unchanged, but not in a dry run."`
	Schema   bool          `help:"Print the JSON Schema of the file, with which editors complete it, and end."`
}

// TokenVariable is the variable of the environment that has the access token.
const TokenVariable = "PROVIDERD_TOKEN"

const maxParallel = 256

// Help is the long help text.
func (*Command) Help() string {
	return "The file maps oauth2 and workspace_directory to lists of providers, each with the fields of the API and an " +
		"id, which is its name where there is none. In values, ${NAME} is replaced by the variable of the environment, and " +
		"$${ stands for ${ itself. The whole file is checked before anything is sent. Running it again creates nothing " +
		"twice: what is stored is unchanged, and an entry that was edited since is reported as drifted. Interrupted, " +
		"run it again for the rest. The caller is the name of the token: use tokens of one name for one file. The server's " +
		"certificate must be signed by one that the system trusts, or one in the file SSL_CERT_FILE. The exit status is 0 " +
		"when every entry is stored as the file has it."
}

// Validate refuses flags that do not go together.
func (c *Command) Validate() error {
	if c.Schema {
		return nil
	}
	if err := c.findMissing(); err != nil {
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
	// With a token that nothing is wrong with, the error is of the URL.
	if _, err := client.New(c.Server, "x"); err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	_, err := c.providers()
	return err
}

// needsServer tells whether the files are sent: a dry run asks a server only where one is named.
func (c *Command) needsServer() bool { return c.Server != "" || !c.DryRun }

// findMissing names all that is missing at once.
func (c *Command) findMissing() error {
	var flags, all []string
	if len(c.Files) == 0 {
		flags = append(flags, "--file=FILE")
	}
	if c.Server == "" && !c.DryRun {
		flags = append(flags, "--server=URL")
	}
	if len(flags) > 0 {
		all = append(all, "missing flags: "+strings.Join(flags, ", "))
	}
	if c.needsServer() && accessToken() == "" {
		all = append(all, "the environment must have an access token in "+TokenVariable)
	}
	if len(all) > 0 {
		return errors.New(strings.Join(all, "; "))
	}
	return nil
}

// Run creates the providers of the file.
func (c *Command) Run(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) error {
	if c.Schema {
		return printSchema(out, contract)
	}
	entries, err := c.read(ctx, contract, out, messages)
	if err != nil {
		return err
	}
	report, err := newReport(c.Output, c.DryRun, messages, entries)
	if err != nil {
		return err
	}
	if advised := report.tellAdvice(); advised > 0 && c.Strict {
		return report.refuseAdvised(out, advised)
	}
	if !c.needsServer() {
		return report.printEntries(out)
	}
	// Until something is sent, a signal ends the program at once, and so does a second one afterwards.
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

// send creates what the entries have, or asks what would become of them.
func (c *Command) send(ctx context.Context, report *report) error {
	providers, err := c.providers()
	if err != nil {
		return err
	}
	c.warnOfPlainHTTP(report.messages)
	if !c.DryRun {
		return report.send(ctx, providers, c.Parallel, (*applied).create)
	}
	if err := checkCanValidate(ctx, providers); err != nil {
		return err
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

// read returns the entries of files that have no fault, and otherwise tells all of them.
func (c *Command) read(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) ([]manifest.Entry, error) {
	flags.KeepHeapSmall()
	files, err := readFiles(c.Files)
	if err != nil {
		return nil, err
	}
	list := manifest.Read(files, manifestKinds(contract), os.LookupEnv)
	faults, err := findFaults(ctx, contract, list)
	if err != nil {
		return nil, err
	}
	if len(faults) == 0 {
		return list.Entries, nil
	}
	if err := printFaults(out, messages, c.Output, faults); err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%s in %s", console.Count(len(faults), "fault"), console.Count(len(files), "file"))
	if len(faults) == manifest.MaxProblems {
		sum = "at least " + sum
	}
	return nil, errors.New(sum + "; nothing was sent")
}

// providers is the client that creates them.
func (c *Command) providers() (*client.Providers, error) {
	return client.New(c.Server, accessToken(), client.WithTryTimeout(c.Timeout))
}

// warnOfPlainHTTP tells that others may read what is sent, where it leaves this machine unencrypted.
func (c *Command) warnOfPlainHTTP(messages *console.Messages) {
	server, err := url.Parse(c.Server)
	if err != nil || server.Scheme != "http" || server.Hostname() == "localhost" {
		return
	}
	if ip := net.ParseIP(server.Hostname()); ip == nil || !ip.IsLoopback() {
		messages.Warn("the token and the secrets go to %s unencrypted; use https", server.Host)
	}
}

func accessToken() string { return strings.TrimSpace(os.Getenv(TokenVariable)) }
