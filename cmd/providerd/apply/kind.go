package apply

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/records"
)

// Kind is a kind of provider.
type Kind struct {
	Name      string
	Operation string
	// Secret is the field with the secret. It can be an empty string or object.
	Secret string
}

// Kinds returns the kinds of provider, sorted by operationId.
func Kinds() []Kind {
	return []Kind{
		{string(records.KindOAuth2), "providers_oauth2_create", "client_secret"},
		{string(records.KindWorkspaceDirectory), "providers_workspace_directory_create", "credentials"},
	}
}

// Operations returns the operationIds of the creates, sorted.
func Operations() []string {
	var operations []string
	for _, kind := range Kinds() {
		operations = append(operations, kind.Operation)
	}
	return operations
}

// KindOf returns the kind of a provider; the zero value if there is no such kind.
func KindOf(name records.Kind) (kind Kind) {
	for _, kind := range Kinds() {
		if kind.Name == string(name) {
			return kind
		}
	}
	return kind
}

func manifestKinds(contract *contract.Document) []manifest.Kind {
	var kinds []manifest.Kind
	for _, kind := range Kinds() {
		kinds = append(kinds, manifest.Kind{Name: kind.Name, Schema: contract.RequestSchema(kind.Operation)})
	}
	return kinds
}

// Advise returns the advice for a record.
func Advise(record records.Record) []advice.Advice {
	switch record := record.(type) {
	case records.OAuth2Provider:
		return advice.OAuth2(record.OAuth2Settings, record.Generated)
	case records.WorkspaceDirectoryProvider:
		return advice.WorkspaceDirectory(record.WorkspaceDirectorySettings)
	default:
		return nil
	}
}

func keyPrefix(kind string) string { return "apply/" + kind + "/" }

func idempotencyKey(kind, id string) string {
	return fmt.Sprintf("%s%x", keyPrefix(kind), sha256.Sum256([]byte(id)))
}

// FieldDiff is a field that a change gives another value. Secrets are masked.
type FieldDiff struct {
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old"`
	New   json.RawMessage `json:"new"`
}

// FieldNames returns the names of the fields of differences.
func FieldNames(diffs []FieldDiff) []string {
	names := make([]string, len(diffs))
	for i, diff := range diffs {
		names[i] = diff.Field
	}
	return names
}

// Diff returns the fields that differ between two records of a kind, in the order of the contract, with secrets masked.
func (k Kind) Diff(document *contract.Document, before, after records.Record) ([]FieldDiff, error) {
	was, err := contract.Fields(before, true)
	is, isErr := contract.Fields(after, true)
	differing, differingErr := records.Differing(before, after)
	if err := cmp.Or(err, isErr, differingErr); err != nil {
		return nil, err //nolint:wrapcheck // Each is of this module.
	}
	operation, _ := document.Operation(k.Operation)
	var diffs []FieldDiff
	for _, name := range operation.FieldNames() {
		// Only credentials can be the same in another notation.
		if bytes.Equal(was[name], is[name]) || name == "credentials" && !slices.Contains(differing, name) {
			continue
		}
		diff := FieldDiff{Field: name, Old: was[name], New: is[name]}
		if name == k.Secret {
			diff.Old, diff.New = masked(diff.Old), masked(diff.New)
		}
		diffs = append(diffs, diff)
	}
	return diffs, nil
}

// masked returns the mask instead of a secret, and empty secrets unchanged.
func masked(secret json.RawMessage) json.RawMessage {
	if string(secret) == `""` {
		return secret
	}
	return json.RawMessage(`"` + contract.Mask + `"`)
}

// Lines returns the lines of a plan: the old and the new value or, for a list or redirect_uris, only what changes.
func (d FieldDiff) Lines() []string {
	before, after := d.elements(d.Old), d.elements(d.New)
	if before == nil || after == nil {
		return []string{d.Field + ": " + string(d.Old) + " -> " + string(d.New)}
	}
	lines := []string{d.Field + ":"}
	add := func(sign string, elements, others []string) {
		for _, element := range elements {
			if !slices.Contains(others, element) {
				lines = append(lines, sign+element)
			}
		}
	}
	add("  - ", before, after)
	add("  + ", after, before)
	if len(lines) == 1 {
		lines[0] += " only the order, repetition or line ends of values change"
	}
	return lines
}

// elements returns the elements of a list of strings, or the redirect URIs; nil for other values.
func (d FieldDiff) elements(value json.RawMessage) (list []string) {
	if d.Field == "redirect_uris" {
		return strings.Fields(console.Unquote(value))
	}
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	return list
}

// Undo returns the command that gives the fields of a provider their old values. Secrets are in files.
func (k Kind) Undo(pk int64, changes []FieldDiff) string {
	words := []string{fmt.Sprintf("providerd provider update %d", pk)}
	for _, change := range changes {
		words = append(words, k.item(change.Field, change.Old))
	}
	return strings.Join(words, " ")
}

// item returns the argument that sets a field, quoted for a shell (POSIX.1-2017, Shell Command Language, 2.2.2).
func (k Kind) item(field string, value json.RawMessage) string {
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	var text *string
	isText := json.Unmarshal(value, &text) == nil && text != nil
	switch {
	case field == k.Secret && k.Name == string(records.KindOAuth2):
		return field + "=@FILE"
	case field == k.Secret:
		return field + ":=@FILE"
	case isText && !strings.HasPrefix(*text, "@") && !strings.ContainsFunc(*text, unicode.IsControl):
		return field + "=" + quoted(*text)
	default:
		return field + ":=" + quoted(string(value))
	}
}
