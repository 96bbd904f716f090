package flags

import (
	"errors"
	"reflect"

	"github.com/alecthomas/kong"
)

// DecodePath decodes the path of a file. The parser's own mapper would take an empty one, such as that of a variable
// without a value, for the working directory.
func DecodePath(context *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := context.Scan.PopValueInto("file", &text); err != nil {
		return err //nolint:wrapcheck // describeUsageError rewords errors of the parser.
	}
	path, err := AbsolutePath(text)
	if err != nil {
		return err
	}
	target.SetString(path)
	return nil
}

// AbsolutePath returns the absolute path. It leaves "-" unchanged and refuses an empty path.
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
