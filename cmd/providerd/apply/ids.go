package apply

import (
	"fmt"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/files"
)

// IDs returns the ids of the entries in files and directories, by the idempotency keys that their ids lead to. It
// resolves references in ids only, so secrets need not exist. It returns an error if a file cannot be read.
func IDs(
	contract *contract.Document, names []string, variable func(name string) (string, bool),
) (map[string]string, error) {
	inputs, err := readFiles(names, true)
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

// ReadEntry returns the body of the only entry in a file, which must be of a kind. It returns the problems of the file.
func ReadEntry(
	contract *contract.Document, name string, kind Kind, variable func(name string) (string, bool),
) ([]byte, error) {
	inputs, err := readFiles([]string{name}, false)
	if err != nil {
		return nil, err
	}
	list := manifest.Read(inputs, manifestKinds(contract), manifest.Values{Variable: variable, File: files.ReadSmall})
	switch {
	case len(list.Problems) > 0:
		return nil, fmt.Errorf("%s: %s", list.Problems[0], list.Problems[0].Detail)
	case len(list.Entries) != 1 || list.Entries[0].Kind != kind.Name:
		return nil, fmt.Errorf("%s must have exactly one entry, in %s", inputs[0].Name, kind.Name)
	default:
		return list.Entries[0].Body, nil
	}
}

// unresolved stands for the values of references. It is a string and JSON.
const unresolved = "null"
