package doctor

import (
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/flags"
)

// examinedURL is a databaseURL that may be wrong, which is for the doctor to find.
type examinedURL struct {
	flags.DatabaseURL
	fault error
}

// UnmarshalText refuses nothing.
func (u *examinedURL) UnmarshalText(text []byte) error { //nolint:unparam // encoding.TextUnmarshaler has it.
	u.fault = u.DatabaseURL.UnmarshalText(text)
	return nil
}

func (u examinedURL) check() error { return u.fault }

// examinedPath is the path of a file that may be wrong, which is for the doctor to find.
type examinedPath struct {
	path  string
	fault error
}

// UnmarshalText refuses nothing.
func (p *examinedPath) UnmarshalText(text []byte) error { //nolint:unparam // encoding.TextUnmarshaler has it.
	p.path, p.fault = flags.AbsolutePath(string(text))
	return nil
}

func (p examinedPath) check() error { return p.fault }

// AfterApply refuses what is wrong with a flag that was given, which is a misuse of the doctor. A variable is also the
// server's.
func (c *Command) AfterApply(command *kong.Context) error {
	for _, element := range command.Path {
		if element.Flag == nil {
			continue
		}
		examined, ok := reflect.TypeAssert[interface{ check() error }](element.Flag.Target)
		if !ok {
			continue
		}
		if err := examined.check(); err != nil {
			return fmt.Errorf("--%s: %w", element.Flag.Name, err)
		}
	}
	return c.Database.CheckHidden("database", command.Args)
}
