package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/providerd/cmd/providerd/manifest"
	"example.com/providerd/gen/client"
	"example.com/providerd/server"
)

type applyCommand struct {
	File     string        `short:"f" placeholder:"FILE" help:"The YAML file that lists the providers; - is standard input."`
	Server   string        `placeholder:"URL" help:"The server, such as http://127.0.0.1:8080. The access token comes from PROVIDERD_TOKEN."`
	DryRun   bool          `help:"Check the file and show what would be sent, without a server."`
	Parallel int           `default:"16" placeholder:"N" help:"Requests at a time, 1 to 256 (default ${default})."`
	Timeout  time.Duration `default:"30s" placeholder:"TIME" help:"How long a request may take before it is sent again (default ${default})."`
	Output   string        `default:"table" enum:"table,json" help:"Form of the output: ${enum} (default ${default}). The table leaves out what is unchanged."`
	Schema   bool          `help:"Print the JSON Schema of the file, with which editors complete it, and end."`
}

const (
	tokenVariable = "PROVIDERD_TOKEN"
	maxParallel   = 256
	// maxFileBytes is how much is read of a file, or from standard input.
	maxFileBytes = 64 << 20
)

// Help is the long help text.
func (*applyCommand) Help() string {
	return "The file maps oauth2 and workspace_directory to lists of providers, each with the fields of the API and an " +
		"id, which is its name where there is none. In values, ${NAME} is replaced by the variable of the environment, and " +
		"$${ stands for ${ itself. The whole file is checked before anything is sent. Running it again creates nothing " +
		"twice: what is stored is unchanged, and an entry that was edited since is reported as differing. Interrupted, " +
		"run it again for the rest. The caller is the name of the token: use tokens of one name for one file. The server's " +
		"certificate must be signed by one that the system trusts, or one in the file SSL_CERT_FILE. The exit status is 0 " +
		"when every entry is stored as the file has it."
}

// Validate refuses flags that do not go together.
func (c *applyCommand) Validate() error {
	switch {
	case c.Schema:
		return nil
	case c.File == "":
		return errors.New("missing flags: --file=FILE")
	case c.Parallel < 1 || c.Parallel > maxParallel:
		return fmt.Errorf("--parallel must be from 1 to %d", maxParallel)
	case c.DryRun:
		return nil
	case c.Server == "":
		return errors.New("missing flags: --server=URL")
	case accessToken() == "":
		return errors.New("the environment must have an access token in " + tokenVariable)
	}
	_, err := c.providers()
	return err
}

// Run creates the providers of the file.
func (c *applyCommand) Run(ctx context.Context, contract *server.Contract, out *output) error {
	if c.Schema {
		return printSchema(out, contract)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	defer context.AfterFunc(ctx, stop)()

	entries, err := c.read(ctx, contract)
	if err != nil {
		return err
	}
	report := newApplyReport(c.fileName(), c.Output, entries)
	if c.DryRun {
		return report.plan(out)
	}
	providers, err := c.providers()
	if err != nil {
		return err
	}
	c.warnOfPlainHTTP()
	ended := report.send(ctx, providers, c.Parallel)
	if err := report.print(out); err != nil && ended != nil {
		return fmt.Errorf("%w; %w", err, ended)
	} else if err != nil {
		return err
	}
	return ended
}

func printSchema(out *output, contract *server.Contract) error {
	text, err := manifest.Schema(manifestKinds(contract))
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func (c *applyCommand) fileName() string {
	if c.File == "-" {
		return "standard input"
	}
	return filepath.Clean(c.File)
}

func (c *applyCommand) text() ([]byte, error) {
	file := os.Stdin
	if c.File != "-" {
		var err error
		if file, err = os.Open(c.File); err != nil {
			return nil, fmt.Errorf("read providers: %w", err)
		}
		defer func() { _ = file.Close() }()
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read providers from %s: %w", c.fileName(), err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("%s has more than %d MiB; split it into several files", c.fileName(), maxFileBytes>>20)
	}
	return text, nil
}

// read returns the entries of a file that has no fault, and otherwise tells all of them.
func (c *applyCommand) read(ctx context.Context, contract *server.Contract) ([]manifest.Entry, error) {
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	list := manifest.Read(text, manifestKinds(contract), os.LookupEnv)
	faults, err := findFaults(ctx, contract, list)
	if err != nil {
		return nil, err
	}
	for _, fault := range faults {
		tellAt(c.fileName(), fault.Position, fault.Kind, fault.ID, fault.Detail)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s has %s; nothing was sent", c.fileName(), count(len(faults), "fault"))
	}
	return list.Entries, nil
}

// providers is the client that creates them.
func (c *applyCommand) providers() (*client.Providers, error) {
	return client.New(c.Server, accessToken(), client.WithTryTimeout(c.Timeout))
}

// warnOfPlainHTTP tells that others may read what is sent, where it leaves this machine unencrypted.
func (c *applyCommand) warnOfPlainHTTP() {
	server, err := url.Parse(c.Server)
	if err != nil || server.Scheme != "http" || server.Hostname() == "localhost" {
		return
	}
	if !isLoopback(server.Hostname()) {
		fmt.Fprintf(os.Stderr, "warning: the token and the secrets go to %s unencrypted; use https\n", server.Host)
	}
}

func accessToken() string { return strings.TrimSpace(os.Getenv(tokenVariable)) }
