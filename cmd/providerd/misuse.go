package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// checkUTF8 refuses arguments that the parser would change: it puts U+FFFD in the place of what is no character, so
// that two names, or two paths, become one.
func checkUTF8(arguments []string) error {
	for i, argument := range arguments {
		if !utf8.ValidString(argument) {
			return fmt.Errorf("argument %d is not UTF-8", i+1)
		}
	}
	return nil
}

// complainOfMisuse says what is wrong with a command line, and which help page tells more.
func complainOfMisuse(err error) int {
	status := complain(errors.New(describeMisuse(err)), exitMisused)
	fmt.Fprintln(os.Stderr, helpHint(err))
	return status
}

// describeMisuse puts the parser's words into those of users. It leaves out the value of a variable, which may have a
// password in it.
func describeMisuse(err error) string {
	const quoted = `"(?:[^"\\]|\\.)*"`
	text := err.Error()
	for pattern, plain := range map[string]string{
		`(?s)unexpected argument .*://.*$`: "unexpected argument; --database takes a URL",

		`(?s) \(from envar (\w+)=.*\)$`:                                           " (from the environment variable $1)",
		`expected a valid \d+ bit u?int but got (` + quoted + `)`:                 "$1 is not a whole number in its range",
		`expected duration but got (` + quoted + `): time: .* duration ` + quoted: "$1 is not a length of time such as 5s",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, plain)
	}
	if flag, _, isMissing := strings.Cut(text, `: expected `); isMissing && strings.HasSuffix(text, `"EOL" (<EOL>)`) {
		return flag + " needs a value"
	}
	return text
}

// helpHint names the help page of the command that was misused.
func helpHint(err error) string {
	command := "providerd"
	var misuse *kong.ParseError
	if errors.As(err, &misuse) && misuse.Context != nil && misuse.Context.Command() != "" {
		command = commandPath(misuse.Context)
	}
	return fmt.Sprintf("Run %q for help.", command+" --help")
}
