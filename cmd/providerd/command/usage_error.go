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

// describeUsageError rewords an error of the parser for users. It omits values of variables, which may contain a
// password.
func describeUsageError(err error) string {
	const quoted = `"(?:[^"\\]|\\.)*"`
	text := err.Error()
	for pattern, plain := range map[string]string{
		`(?s)unexpected argument .*://.*$`: "unexpected argument; --database takes a URL",

		`(?s) \(from envar (\w+)=.*\)$`:                                           " (from the environment variable $1)",
		`expected a valid \d+ bit u?int but got (` + quoted + `)`:                 "$1 is not a whole number in its range",
		`expected duration but got (` + quoted + `): time: .* duration ` + quoted: "$1 is not a duration such as 5s",
		`expected \w+ value but got (` + quoted + `) \(short flag\); perhaps try (--[\w-]+)=.*$`: "" +
			"write a value that begins with a hyphen as $2=VALUE",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, plain)
	}
	if flag, _, isMissing := strings.Cut(text, `: expected `); isMissing && strings.HasSuffix(text, `"EOL" (<EOL>)`) {
		return flag + " needs a value"
	}
	if unknown := regexp.MustCompile(`^unknown flag (--?)([^ ,=]+)`).FindStringSubmatch(text); unknown != nil {
		if remedy := remedyForFlag(err, unknown[2]); remedy != "" || unknown[1] == "-" {
			// For a flag of one letter, the parser would suggest any other.
			return unknown[0] + remedy
		}
	}
	return text + commandsAfter(err)
}

// selectedIn returns the command of a usage error; nil if there is none.
func selectedIn(err error) *kong.Node {
	var usage *kong.ParseError
	if !errors.As(err, &usage) || usage.Context == nil {
		return nil
	}
	return usage.Context.Selected()
}

// commandsAfter returns what to write instead of an unknown command.
func commandsAfter(err error) string {
	var usage *kong.ParseError
	if !errors.As(err, &usage) || usage.Context == nil || !strings.HasPrefix(err.Error(), "unexpected argument") ||
		strings.Contains(err.Error(), "did you mean") {
		return ""
	}
	parent := usage.Context.Model.Node
	if selected := usage.Context.Selected(); selected != nil {
		parent = selected
	}
	var names []string
	for _, child := range parent.Children {
		names = append(names, child.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "; the commands are " + strings.Join(names, ", ")
}

// remedyForFlag returns the flag that other programs call by an unknown name; "" if there is none.
func remedyForFlag(err error, unknown string) string {
	selected := selectedIn(err)
	if selected == nil {
		return ""
	}
	for _, known := range []struct{ names, flag, example string }{
		{"port p host addr address bind", "listen", "127.0.0.1:8080"},
		{"format f json o", "output", console.FormatJSON},
		{"db dsn url database-url", databaseFlag, "sqlite:data/providerd.db"},
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
		if isName && hasFlag(selected, known.flag, known.example) {
			return strings.TrimSuffix(fmt.Sprintf("; use --%s %s", known.flag, known.example), " ")
		}
	}
	return ""
}

// hasFlag reports whether a command has a flag that accepts the value.
func hasFlag(command *kong.Node, name, value string) bool {
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		if flag.Name == name {
			return flag.Enum == "" && value != console.FormatJSON || slices.Contains(strings.Split(flag.Enum, ","), value)
		}
	}
	return false
}
