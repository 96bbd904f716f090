package command

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
)

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
		`expected \w+ value but got (` + quoted + `) \(short flag\); perhaps try (--[\w-]+)=.*$`: "" +
			"a value that begins with a hyphen is written $2=VALUE",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, plain)
	}
	if flag, _, isMissing := strings.Cut(text, `: expected `); isMissing && strings.HasSuffix(text, `"EOL" (<EOL>)`) {
		return flag + " needs a value"
	}
	if unknown := regexp.MustCompile(`^unknown flag (--?)([^ ,=]+)`).FindStringSubmatch(text); unknown != nil {
		if remedy := remedyForFlag(err, unknown[2]); remedy != "" || unknown[1] == "-" {
			// Of flags of one letter, the parser offers any other.
			return unknown[0] + remedy
		}
	}
	return text
}

// remedyForFlag says which flag of the command does what people know by another name; "" where none does.
func remedyForFlag(err error, unknown string) string {
	var misuse *kong.ParseError
	if !errors.As(err, &misuse) || misuse.Context == nil || misuse.Context.Selected() == nil {
		return ""
	}
	for _, known := range []struct{ names, flag, example string }{
		{"port p host addr address bind", "listen", "127.0.0.1:8080"},
		{"format f json yaml o", "output", console.FormatJSON},
		{"db dsn url database-url", "database", "sqlite:data/providerd.db"},
		{"url u host address", "server", "http://127.0.0.1:8080"},
		{"verbose v debug", "log-level", "debug"},
		{"log json", "log-format", console.FormatJSON},
		{"cert certificate", "tls-cert", "server.pem"},
		{"key private-key", "tls-key", "server.key"},
		{"key keys", "keyset", "data/keyset.json"},
		{"ttl expires expiry", "expires-in", "90d"},
		{"operation operations scope scopes", "allow", "providers_oauth2_create"},
		{"n count", "limit", "10"},
		{"force f y", "yes", ""},
		{"force f overwrite", "replace", ""},
		{"secrets show-secrets", "reveal", ""},
	} {
		isName := slices.Contains(strings.Fields(known.names), unknown)
		if isName && hasFlag(misuse.Context.Selected(), known.flag, known.example) {
			return strings.TrimSuffix(fmt.Sprintf("; use --%s %s", known.flag, known.example), " ")
		}
	}
	return ""
}

// hasFlag tells whether a command has a flag that takes the value.
func hasFlag(command *kong.Node, name, value string) bool {
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		if flag.Name == name {
			return flag.Enum == "" && value != console.FormatJSON || slices.Contains(strings.Split(flag.Enum, ","), value)
		}
	}
	return false
}
