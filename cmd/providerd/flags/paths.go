package flags

import (
	"errors"
	"reflect"

	"github.com/alecthomas/kong"
)

// DecodePath reads the path of a file for the parser, whose own way takes an empty one, such as that of a variable
// without a value, for the folder that the program runs in.
func DecodePath(context *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := context.Scan.PopValueInto("file", &text); err != nil {
		return err //nolint:wrapcheck // The parser's own errors are put into plain words by describeMisuse.
	}
	path, err := AbsolutePath(text)
	if err != nil {
		return err
	}
	target.SetString(path)
	return nil
}

// AbsolutePath is a path that is the same in any folder. It leaves "-" as it is, which is no file.
func AbsolutePath(text string) (string, error) {
	switch text {
	case "":
		return "", errors.New("must not be empty")
	case "-":
		return text, nil
	default:
		return kong.ExpandPath(text), nil
	}
}
