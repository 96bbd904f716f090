package flags

import (
	"cmp"
	"errors"
	"fmt"

	"example.com/providerd/store/durable"
	"example.com/providerd/store/sqlite"
)

// CheckDistinctPaths refuses one file for two things, one of which would destroy the other: a database, its keyset, which a
// flag may name, the token of its first start, and what a command is to write, unless that is "".
func CheckDistinctPaths(database DatabaseURL, keyset, output string) error {
	places := database.files()
	if keyset = cmp.Or(keyset, database.DefaultKeyset()); keyset != "" {
		if err := CheckFileName(keyset); err != nil {
			return fmt.Errorf("--keyset: %w", err)
		}
		places = append(places, place{"the keyset", durable.Resolve(keyset)})
	}
	if output != "" {
		places = append(places, place{"the file to write", durable.Resolve(output)})
	}
	for i, one := range places {
		for _, other := range places[:i] {
			if one.path == other.path {
				return fmt.Errorf("%s and %s would both be %s; name another file", other.what, one.what, one.path)
			}
		}
	}
	return nil
}

// CheckFileName refuses what is no file of a person's own.
func CheckFileName(path string) error {
	switch path {
	case "":
		return errors.New("must not be empty")
	case "-":
		return errors.New(`"-" is not a file; name one`)
	default:
		return sqlite.CheckName(path)
	}
}
