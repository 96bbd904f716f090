package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

type providerExportCommand struct {
	flags.DatabaseFlags
	providerFlags
	Output flags.FilePath `placeholder:"FILE" help:"Write to this file, which its owner alone can read, in place of standard output. It must not be there yet, and is there whole or not at all."`
	Reveal bool           `help:"Write secrets in plain text. Without it, references such as $${NAME} stand for them, which are listed on standard error."`
}

// Help is the long help text.
func (*providerExportCommand) Help() string {
	return "Each entry has an id of its kind and its pk, such as oauth2-17, since the id that it may have been applied " +
		"with is not stored. References are named after it, such as OAUTH2_17_CLIENT_SECRET, and are the same in each " +
		"export; that of credentials must lead to JSON. Links to applications are not in the file. Applied where the " +
		"providers still are, it is refused for their client_ids and makes directories twice: delete them first, or apply " +
		"it elsewhere. What is damaged is left out, told of, and makes the exit status 1."
}

// Validate refuses a limit of nothing certain, the file having one kind after the other, and a file of the database.
func (c *providerExportCommand) Validate() error {
	if c.Limit > 0 && c.Kind == "" {
		return errors.New("missing flags: --kind=KIND, of which --limit counts the providers")
	}
	return flags.CheckDistinctPaths(c.Database, c.Keyset, string(c.Output))
}

// Run writes the file.
func (c *providerExportCommand) Run(
	ctx context.Context, contract *contract.Document, out *console.Output, messages *console.Messages,
) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	to := exporter{contract: contract, messages: messages, reveal: c.Reveal}
	err := c.WithStore(ctx, func(database *store.Store) error {
		if c.Output == "" {
			return c.write(ctx, database, &to, out)
		}
		return flags.WritePrivateFile(string(c.Output), func(file io.Writer) error {
			buffered := console.NewOutput(file)
			err := c.write(ctx, database, &to, buffered)
			return errors.Join(err, buffered.Flush())
		})
	})
	if err != nil {
		return err
	}
	return to.sum()
}

// write writes the providers of one kind after the other.
func (c *providerExportCommand) write(ctx context.Context, database *store.Store, to *exporter, out io.Writer) error {
	to.writer = manifest.NewWriter(out)
	for _, kind := range apply.Kinds() {
		selected := c.providerFlags
		if c.Kind != "" && string(c.Kind) != kind.Name {
			continue
		}
		selected.Kind = providerKind(kind.Name)
		for record, err := range selected.records(ctx, database, to.messages) {
			if errors.Is(err, store.ErrDamaged) {
				to.messages.Error(err)
				to.damaged++
				continue
			}
			if err == nil {
				err = to.add(kind, record)
			}
			if err != nil {
				return err
			}
		}
	}
	return to.writer.Close(string(store.KindOAuth2))
}

// exporter writes records as entries of a manifest.
type exporter struct {
	writer   *manifest.Writer
	contract *contract.Document
	messages *console.Messages
	reveal   bool
	// exported, references and damaged count.
	exported, references, damaged int
}

func (e *exporter) add(kind apply.Kind, record store.Record) error {
	pk := record.Common().PK
	id := fmt.Sprintf("%s-%d", kind.Name, pk)
	fields, err := e.fields(kind, record)
	if err != nil {
		return fmt.Errorf("render provider %d: %w", pk, err)
	}
	secret := kind.SecretField()
	isReference := !e.reveal && len(fields[secret]) > len(`""`)
	if isReference {
		name := strings.ToUpper(strings.ReplaceAll(id, "-", "_") + "_" + secret)
		fields[secret] = json.RawMessage(`"${` + name + `}"`)
		e.messages.Note("%s stands for the %s of provider %d", name, secret, pk)
		e.references++
	}
	body, err := inOrder(id, fields)
	if err != nil {
		return fmt.Errorf("render provider %d: %w", pk, err)
	}
	e.exported++
	return e.writer.Entry(kind.Name, body, func(at jsontext.Pointer) bool {
		return isReference && string(at) == "/"+secret
	})
}

// fields are those of a request that creates the record: what is null or empty by default, a request leaves out.
func (e *exporter) fields(kind apply.Kind, record store.Record) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(render(record, true))
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	known := e.contract.RequestSchema(kind.Operation).Properties
	maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
		property := known[name]
		return property == nil || string(value) == "null" || string(value) == `""` && property.Value.MinLength > 0
	})
	return fields, nil
}

// inOrder writes the fields behind the id and the name.
func inOrder(id string, fields map[string]json.RawMessage) ([]byte, error) {
	quoted, err := json.Marshal(id)
	if err != nil {
		return nil, fmt.Errorf("write id: %w", err)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(name string) bool { return name == "name" })
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"id":%s,"name":%s`, quoted, fields["name"])
	for _, name := range names {
		fmt.Fprintf(&body, `,%q:%s`, name, fields[name])
	}
	body.WriteByte('}')
	return body.Bytes(), nil
}

// sum says what was exported.
func (e *exporter) sum() error {
	sum := console.Count(e.exported, "provider") + " exported"
	if e.references > 0 {
		sum += fmt.Sprintf("; \"providerd apply\" needs %s in the environment", console.Count(e.references, "variable"))
	}
	e.messages.Note("%s", sum)
	return console.SkippedError(e.damaged)
}
