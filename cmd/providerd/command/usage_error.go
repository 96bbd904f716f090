package command

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
)

const missingCommand = "missing command"

// describeUsageError rewords an error of the parser for users. It omits what may be a secret: values of variables, of
// items and of URLs.
func describeUsageError(err error) string {
	const quoted = `"(?:[^"\\]|\\.)*"`
	text := err.Error()
	for _, reworded := range [][2]string{
		{`(?s)unexpected argument .*://.*$`, "unexpected argument; --database takes a URL"},
		{`(?s)(unexpected argument [^=]*)=.*$`, "$1=…"},
		{`, did you mean ".*"\?$`, ""},
		{`^((?:[a-z]+ )+[a-z]+) \([a-z]+\):`, "$1:"},
		{`^\[?(<[a-z]+>)\]?(?: \.\.\.)?:`, "$1:"},
		{`^expected "(<[^"]+)"$`, "missing argument: $1"},
		{`^expected one of .*`, missingCommand},
		{`(?s) \(from envar (\w+)=.*\)$`, " (from the environment variable $1)"},
		{`expected a valid \d+ bit u?int but got (` + quoted + `)`, "$1 is not a whole number in its range"},
		{`expected duration but got (` + quoted + `): time: .* duration ` + quoted, "$1 is not a duration such as 5s"},
		{
			`expected \w+ value but got (` + quoted + `) \(short flag\); perhaps try (--[\w-]+)=.*$`,
			"write a value that begins with a hyphen as $2=VALUE",
		},
	} {
		text = regexp.MustCompile(reworded[0]).ReplaceAllString(text, reworded[1])
	}
	if flag, _, isMissing := strings.Cut(text, `: expected `); isMissing && strings.HasSuffix(text, `"EOL" (<EOL>)`) {
		return flag + " needs a value"
	}
	command := failedCommand(err)
	if command == nil {
		return text
	}
	if unknown := regexp.MustCompile(`^unknown flag (--?)([^ ,=]+)`).FindStringSubmatch(text); unknown != nil {
		return unknown[0] + remedyForFlag(command, unknown[1], unknown[2])
	}
	if argument, ok := strings.CutPrefix(text, "unexpected argument "); ok || text == missingCommand {
		return text + remedyForArgument(command, argument)
	}
	return text + variableOf(err, command, text)
}

// failedCommand returns the command of a usage error, or the program; nil if the error is another one.
func failedCommand(err error) *kong.Node {
	usage, ok := errors.AsType[*kong.ParseError](err)
	if !ok || usage.Context == nil {
		return nil
	}
	if selected := usage.Context.Selected(); selected != nil {
		return selected
	}
	return usage.Context.Model.Node
}

// variableOf names the variable of a flag that an error is about, unless the flag is on the command line.
func variableOf(err error, command *kong.Node, text string) string {
	usage, _ := errors.AsType[*kong.ParseError](err)
	if strings.Contains(text, "(from the environment") || strings.HasPrefix(text, "missing flags") {
		return ""
	}
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		isGiven := slices.ContainsFunc(usage.Context.Path, func(path *kong.Path) bool { return path.Flag == flag })
		isGiven = isGiven || strings.HasPrefix(text, "--"+flag.Name+": ")
		if isGiven || len(flag.Envs) == 0 || !regexp.MustCompile("--"+flag.Name+`\b`).MatchString(text) {
			continue
		}
		if _, isSet := os.LookupEnv(flag.Envs[0]); isSet {
			return " (from the environment variable " + flag.Envs[0] + ")"
		}
	}
	return ""
}

// remedyForArgument returns what to write instead of an unexpected argument.
func remedyForArgument(command *kong.Node, argument string) string {
	var names []string
	for _, child := range command.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	similar := contract.MostSimilar(argument, names)
	switch {
	case similar != "":
		return fmt.Sprintf("; did you mean %q?", similar)
	case len(names) > 0:
		return "; the commands are " + strings.Join(names, ", ")
	case hasFlag(command, "file", ""):
		return "; pass files with --file"
	case hasFlag(command, "allow", "all"):
		return "; pass the name of the caller with --name"
	default:
		return ""
	}
}

// remedyForFlag returns the flag to use instead of an unknown one, perhaps of another program; "" if there is none.
func remedyForFlag(command *kong.Node, hyphens, unknown string) string {
	for _, known := range []struct{ names, flag, example string }{
		{"port p host addr address bind", "listen", "127.0.0.1:8080"},
		{"format f json o", "output", console.FormatJSON},
		{"output o file f", "to", "providers.yaml"},
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
		if isName && hasFlag(command, known.flag, known.example) {
			return strings.TrimSuffix(fmt.Sprintf("; use --%s %s", known.flag, known.example), " ")
		}
	}
	var names []string
	for _, flag := range slices.Concat(command.AllFlags(true)...) {
		names = append(names, flag.Name)
	}
	if similar := contract.MostSimilar(unknown, names); similar != "" && hyphens == "--" {
		return fmt.Sprintf("; did you mean --%s?", similar)
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
