package provider

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/server/contract"
)

// TestCommandsKnowTheContract checks that commands know each operation, and that a shell passes the old value of any
// field to the command that undoes a change.
func TestCommandsKnowTheContract(t *testing.T) {
	t.Parallel()
	document, err := contract.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(apply.Operations(), document.OperationIDs()) {
		t.Errorf("commands know the operations %v, the contract has %v", apply.Operations(), document.OperationIDs())
	}
	for _, kind := range apply.Kinds() {
		operation, _ := document.Operation(kind.Operation)
		for _, field := range operation.FieldNames() {
			for _, value := range []string{`"it's"`, `"a\nb"`, `"@x"`, `""`, `["a","b"]`, "[]", "null", "true"} {
				line := kind.Undo(17, []apply.FieldDiff{{Field: field, Old: []byte(value)}})
				arguments, isUndo := strings.CutPrefix(line, "providerd provider update 17 ")
				printed, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+arguments).Output()
				if !isUndo || err != nil {
					t.Fatalf("undo is %s, %v", line, err)
				}
				if field == kind.Secret {
					if !strings.HasSuffix(line, "=@FILE") {
						t.Errorf("a secret is undone by %s", line)
					}
					continue
				}
				members, err := items{string(printed)}.members(kind.Secret)
				if err != nil || string(members[field]) != value {
					t.Errorf("%s with %s is undone by %s: %s, %v", field, value, line, members[field], err)
				}
			}
		}
	}
}
