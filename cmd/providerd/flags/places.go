package flags

import (
	"cmp"
	"errors"
	"fmt"

	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite"
)

// CheckDistinctPaths refuses a path that is used twice by the files of a database, its keyset, the initial token and
// the output of a command, unless that is "".
func CheckDistinctPaths(database DatabaseURL, keyset, output string) error {
	places := database.files()
	if keyset = cmp.Or(keyset, database.DefaultKeyset()); keyset != "" {
		if err := CheckFileName(keyset); err != nil {
			return fmt.Errorf("--keyset: %w", err)
		}
		places = append(places, place{"the keyset", files.Resolve(keyset)})
	}
	if output != "" {
		places = append(places, place{"the output file", files.Resolve(output)})
	}
	for i, place := range places {
		for _, other := range places[:i] {
			if place.path == other.path {
				return fmt.Errorf("%s and %s would both be %s; use another file", other.what, place.what, place.path)
			}
		}
	}
	return nil
}

// CheckFileName refuses an empty path, "-" and names that SQLite treats specially.
func CheckFileName(path string) error {
	switch path {
	case "":
		return errors.New("must not be empty")
	case "-":
		return errors.New(`"-" is not a file; pass the path of one`)
	default:
		return sqlite.CheckName(path)
	}
}
