package apply

import (
	"fmt"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/server/contract"
)

// IDs returns the ids of the entries in files and directories, by the idempotency keys that their ids lead to. It
// resolves references in ids only, so secrets need not exist. It returns an error if a file cannot be read.
func IDs(
	contract *contract.Document, names []string, variable func(name string) (string, bool),
) (map[string]string, error) {
	inputs, _, err := readFiles(names, true)
	if err != nil {
		return nil, err
	}
	list := manifest.Read(inputs, manifestKinds(contract), manifest.Values{
		Variable: func(name string) (string, bool) {
			if value, ok := variable(name); ok && value != "" {
				return value, true
			}
			return unresolved, true
		},
		File: func(string) ([]byte, error) { return []byte(unresolved), nil },
	})
	if len(list.Problems) > 0 {
		return nil, fmt.Errorf("%s: %s", list.Problems[0], list.Problems[0].Detail)
	}
	ids := make(map[string]string, len(list.Entries))
	for _, entry := range list.Entries {
		ids[idempotencyKey(entry.Kind, entry.ID)] = entry.ID
	}
	return ids, nil
}

// unresolved stands for the values of references. It is a string and JSON.
const unresolved = "null"
