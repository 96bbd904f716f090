package console

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite"
)

// InitialTokenFile is the name of the file with the initial token, in the directory of a SQLite database.
const InitialTokenFile = "initial-token"

// DecodePath decodes the path of a file. It refuses an empty one, such as from a variable without a value, which the
// parser's own mapper would take for the working directory, "-", and names that SQLite treats specially.
func DecodePath(context *kong.DecodeContext, target reflect.Value) error {
	var path string
	if err := context.Scan.PopValueInto("file", &path); err != nil {
		return err //nolint:wrapcheck // describeUsageError rewords errors of the parser.
	}
	if strings.HasPrefix(path, "~") {
		path = kong.ExpandPath(path)
	}
	target.SetString(path)
	switch path {
	case "":
		return errors.New("must not be empty")
	case "-":
		return errors.New(`"-" is not a file; pass the path of one`)
	default:
		return checkPath(path)
	}
}

// checkPath refuses what only a shell replaces or removes, and names that SQLite treats specially.
func checkPath(path string) error {
	if regexp.MustCompile(`^[~$\s]|\s(#|$)`).MatchString(path) {
		return errors.New("must not begin with ~ or $, or have a comment or white space around it; write the path in full")
	}
	return sqlite.CheckName(path)
}

// CheckDistinctPaths refuses a path that is used twice by the files of a database, its keyset, the initial token and
// the output of a command, unless that is "".
func CheckDistinctPaths(database DatabaseURL, keyset, output string) error {
	var initialToken string
	if database.Path != "" {
		initialToken = filepath.Join(filepath.Dir(files.Resolve(database.Path)), InitialTokenFile)
	}
	used := map[string]string{}
	for _, file := range [][2]string{
		{"the database", database.Path},
		{"the initial token", initialToken},
		{"the keyset", cmp.Or(keyset, database.DefaultKeyset())},
		{"the output file", output},
	} {
		if file[1] == "" {
			continue
		}
		path := files.Resolve(file[1])
		if other := used[path]; other != "" {
			return fmt.Errorf("%s and %s would both be %s; use another file", other, file[0], path)
		}
		used[path] = file[0]
	}
	return nil
}
