package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
	"example.com/providerd/store/records"
)

type exportCommand struct {
	console.DatabaseFlags
	providerFlags
	To     string `type:"path" placeholder:"FILE" help:"New file for the output, readable only by its owner, instead of standard output."`
	Reveal bool   `help:"Write secrets instead of references such as $${NAME}, which are listed on standard error."`
}

// Help is the long help text.
func (*exportCommand) Help() string {
	return "The id of an entry is its kind and pk, such as oauth2-17, because the id that it was applied with is not " +
		"stored. References are named after the entry and the field, such as OAUTH2_17_CLIENT_SECRET; the variable for " +
		"credentials must contain JSON. Links to applications are not exported. Apply the file to another database, or " +
		"delete the providers first: otherwise OAuth2 entries are refused because their client_id is taken, and " +
		"directories are created twice. Damaged providers are reported and omitted, and the exit status is 1."
}

// Validate refuses --limit without --kind, because the file contains one kind after the other, names of other formats,
// and a path that the database or its keyset uses.
func (c *exportCommand) Validate() error {
	if c.Limit > 0 && c.Kind == "" {
		return errors.New("--limit requires --kind")
	}
	err := console.CheckDistinctPaths(c.Database, c.Keyset, c.To)
	if err == nil && slices.Contains([]string{".json", ".jsonl", ".csv", ".toml"}, filepath.Ext(c.To)) {
		err = errors.New(`--to writes YAML; use a name such as providers.yaml, or run "providerd provider list -o json"`)
	}
	return err
}

// Run writes the file.
func (c *exportCommand) Run(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) error {
	ctx, stop := console.UntilInterrupted(ctx)
	defer stop()
	to := exporter{exportCommand: c, contract: contract, messages: messages}
	err := c.WithStore(ctx, func(database *store.Store) error {
		if c.To == "" {
			return to.write(ctx, database, out)
		}
		return files.Create(c.To, files.Owner{}, func(file io.Writer) error {
			buffered := console.NewOutput(file)
			return errors.Join(to.write(ctx, database, buffered), buffered.Flush())
		})
	})
	if err != nil {
		return err
	}
	sum := console.Count(to.exported, "provider") + " exported"
	if to.references > 0 {
		sum += fmt.Sprintf("; \"providerd apply\" needs %s in the environment", console.Count(to.references, "variable"))
	}
	messages.Note("%s", sum)
	return console.SkippedError(to.damaged)
}

type exporter struct {
	*exportCommand
	contract *contract.Document
	messages *console.Messages
	writer   manifest.Writer
	// exported, references and damaged are counts.
	exported, references, damaged int
}

func (e *exporter) write(ctx context.Context, database *store.Store, out io.Writer) error {
	e.writer = manifest.Writer{Out: out}
	for _, kind := range apply.Kinds() {
		selected := e.providerFlags
		if e.Kind != "" && string(e.Kind) != kind.Name {
			continue
		}
		selected.Kind = console.ProviderKind(kind.Name)
		for record, err := range database.Providers.Opened(ctx, selected.records(ctx, database, e.messages)) {
			if errors.Is(err, store.ErrDamaged) {
				e.messages.Error(err)
				e.damaged++
				continue
			}
			if err == nil {
				err = e.add(kind, record)
			}
			if err != nil {
				return err
			}
		}
	}
	return e.writer.Close(string(records.KindOAuth2))
}

func (e *exporter) add(kind apply.Kind, record records.Record) error {
	pk := record.Common().PK
	name := fmt.Sprintf("%s-%d", kind.Name, pk)
	fields, err := requestFields(e.contract, kind, record)
	if err != nil {
		return fmt.Errorf("render provider %d: %w", pk, err)
	}
	secret := kind.Secret
	var reference jsontext.Pointer
	if !e.Reveal && len(fields[secret]) > len(`""`) {
		reference = reference.AppendToken(secret)
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_") + "_" + secret)
		fields[secret] = json.RawMessage(`"${` + variable + `}"`)
		e.messages.Note("%s replaces the %s of provider %d", variable, secret, pk)
		e.references++
	}
	if string(fields[secret]) == `""` && console.Unquote(fields["client_type"]) != public {
		reference = reference.AppendToken(secret)
	}
	e.exported++
	return e.writer.Entry(kind.Name, inOrder(name, fields), reference)
}

// inOrder writes the id, the name and then the other fields.
func inOrder(id string, fields map[string]json.RawMessage) []byte {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(name string) bool { return name == "name" })
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"id":%q,"name":%s`, id, fields["name"])
	for _, name := range names {
		fmt.Fprintf(&body, `,%q:%s`, name, fields[name])
	}
	body.WriteByte('}')
	return body.Bytes()
}
