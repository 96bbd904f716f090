package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/server/contract"
)

// TestCommandsKnowTheContract checks that commands know each operation, and that the command that undoes a change of any
// field has only flags that exist.
func TestCommandsKnowTheContract(t *testing.T) {
	t.Parallel()
	document, err := contract.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(apply.Operations(), document.OperationIDs()) {
		t.Errorf("commands know the operations %v, the contract has %v", apply.Operations(), document.OperationIDs())
	}
	update, _ := commandOf(newTestParser(t).Model.Node, []string{"provider", "update"})
	for _, kind := range apply.Kinds() {
		operation, _ := document.Operation(kind.Operation)
		for _, field := range operation.FieldNames() {
			for _, value := range []string{`"it's"`, `["a","b"]`, "[]", "null", "true"} {
				line := undoCommand(17, []apply.FieldDiff{{Field: field, Old: []byte(value)}})
				flag, _, _ := strings.Cut(strings.TrimPrefix(line, "providerd provider update 17 --"), "=")
				if !slices.ContainsFunc(update.Flags, func(f *kong.Flag) bool { return f.Name == flag }) {
					t.Errorf("%s with %s is undone by %s", field, value, line)
				}
			}
		}
	}
	got := undoCommand(17, []apply.FieldDiff{
		{Field: "redirect_uris", Old: []byte(`"https://a.example.com\nhttps://b.example.com"`)},
		{Field: "include_claims_in_id_token", Old: []byte("false")},
		{Field: "client_secret", Old: []byte(`"********"`)},
	})
	const want = "providerd provider update 17 --redirect-uri='https://a.example.com' --redirect-uri='https://b.example.com' " +
		"--no-include-claims-in-id-token --client-secret-file=FILE"
	if got != want {
		t.Errorf("undo is %s", got)
	}
}
