package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
)

// printUsageError prints what is wrong with a command line and with variables, and which help to read.
func printUsageError(err error) int {
	usage, ok := errors.AsType[*kong.ParseError](err)
	if !ok || usage.Context == nil {
		return printError(err, exitUsage)
	}
	command, problem := selected(usage.Context), describeUsageError(err)
	problems := invalidVariables(command)
	if !slices.Contains(problems, problem) {
		problems = strings.Split(withRemedy(usage.Context, problem), "\n")
	}
	for _, problem := range problems {
		printError(errors.New(console.Printable(problem)), exitUsage)
	}
	fmt.Fprintf(os.Stderr, "Run %q for help.\n", pathOf(command)+" --help")
	return exitUsage
}

// describeUsageError rewords an error of the parser, without values of variables, fields and URLs, and what mask omits.
func describeUsageError(err error) string {
	text, assignment, isVariable := strings.Cut(withoutAliases(err.Error()), " (from envar ")
	for _, reworded := range [][2]string{
		{`(?s)unexpected argument .*://.*$`, "unexpected argument; --database takes a URL"},
		{
			`^<(\w+)> \.\.\.: ("[^"=]*[,;][^"=]*"|"\d+(?:-|\.\.|\s+)\d[^"=]*") is not a .*$`,
			"<$1>: $2 is not one $1; separate several with spaces; ranges are not taken",
		},
		{`^\[?(<[a-z]+>)\]?(?: \.\.\.)?:`, "$1:"},
		{`^expected "(<[^"]+)"$`, "missing argument: $1"},
		{`(?s): expected .* but got "-----BEGIN.*$`, ": a PEM block is not a value; flags take the paths of files"},
		{`: (expected .* ("EOL" \(<EOL>\)|\(long flag\); perhaps try .*)|missing value, expecting .*)$`, " needs a value"},
		{`: expected .* but got "-\d.*" \(short flag\).*$`, " must not be negative"},
		{`: expected .* \(short flag\); perhaps try (--[\w-]+)=.*$`, ": write a value that begins with a hyphen as $1=VALUE"},
		{`^--dry-run: bool value .* but got "server"$`, "--dry-run takes no value; write --dry-run --server URL"},
		{`^(--[\w-]+): bool value .*$`, "$1 takes no value; write $1 alone, or omit it"},
		{
			`^(<pk>|--pk|--provider|--backchannel): .* is not a whole number.*$`,
			`$0; "providerd provider list --name NAME" shows the pk of a provider`,
		},
		{`^<id>: .* is not a whole number.*$`, `$0; "providerd token list" shows the id of each token`},
		{`expected duration but got (".*"): time: .*$`, "$1 is not a duration such as 5s"},
		{`expected a valid 64 bit int but got (".*")$`, "$1 is not a whole number"},
		{`^unknown flag -=.*$`, "a flag of one letter that takes no value has one; write the flag alone, or omit it"},
		{`^(unknown flag -[^-]), did you mean .*$|, did you mean "--yes"\?$`, "$1"},
		{`, did you mean`, "; did you mean"},
		{`(^--allow .* but got "[^"]*[ ;|][^"]*")$`, "$1; separate operations with commas, without spaces"},
		{`^--allow .* but got "(oauth2|workspace_directory)"$`, "$0; did you mean providers_${1}_create?"},
		{`slog: level string (".*"): unknown name`, "$1 is not a log level; use debug, info, warn or error"},
	} {
		text = regexp.MustCompile(reworded[0]).ReplaceAllString(text, reworded[1])
	}
	repeated := regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|^un(?:expected argument|known flag) .*`)
	text = repeated.ReplaceAllStringFunc(text, mask)
	if isVariable {
		variable, _, _ := strings.Cut(assignment, "=")
		text += sourceOf(variable)
	}
	return text
}

// mask omits values of fields, tokens, contents of files, and what looks generated, from what an error repeats.
func mask(repeated string) string {
	if !regexp.MustCompile(`[={}\n]|\\n|pvd_|[0-9A-Za-z+]{12}\d|\d[0-9A-Za-z+]{12}`).MatchString(repeated) {
		return repeated
	}
	shown := regexp.MustCompile(`(?s)^(?:(")|(un\w+ \w+ ))([A-Za-z_-]+:?=)?.*$`)
	return shown.ReplaceAllString(repeated, "$1$2$3…$1")
}

// withRemedy adds which variable to correct, if it sets the flag of an error, or what to write instead.
func withRemedy(usage *kong.Context, problem string) string {
	command := selected(usage)
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		_, isSet := os.LookupEnv(strings.Join(flag.Envs, ""))
		if problem == "--"+flag.Name+" needs a value" {
			return problem + ": " + flag.Summary()
		}
		isGiven := slices.ContainsFunc(usage.Path, func(path *kong.Path) bool { return path.Flag == flag })
		isGiven = isGiven || strings.HasPrefix(problem, "--"+flag.Name+": ")
		if isSet && !isGiven && regexp.MustCompile("--"+flag.Name+`\b`).MatchString(problem) {
			return problem + sourceOf(flag.Envs[0])
		}
	}
	if argument, ok := strings.CutPrefix(problem, "unexpected argument "); ok {
		argument, _, _ = strings.Cut(argument, "; did you mean")
		at := max(slices.Index(usage.Args, argument), 0)
		next := strings.Join(usage.Args[at+1:min(at+2, len(usage.Args))], "")
		return "unexpected argument " + argument + meantCommand(command, argument, next, usage.Args[:at])
	}
	if regexp.MustCompile(`^<\w+>: .* is not a whole number`).MatchString(problem) {
		return problem + "; the usage is: " + usageOf(command)
	}
	unknown := regexp.MustCompile(`^unknown flag --?([^ ;=]+)`).FindStringSubmatch(problem)
	if unknown == nil {
		return problem
	}
	meant := meantFlag(command, unknown[1])
	if meant == "" && strings.HasSuffix(problem, "?") {
		return problem
	}
	return unknown[0] + cmp.Or(meant, flagElsewhere(usage.Model.Node, command, unknown[1]))
}

// commandsCalled returns the commands in a group that have a name, here or in other programs, and of these the ones in
// the group that the next argument names, if there are any; "" if there are none.
func commandsCalled(name, next string, group *kong.Node) string {
	found := map[bool][]string{}
	for _, leaf := range group.Leaves(true) {
		names := slices.Concat(leaf.Aliases, strings.Fields(leaf.Tag.Get("synonyms")), []string{leaf.Name})
		if leaf != group && slices.Contains(names, name) {
			isNext := contract.MostSimilar(next, []string{leaf.Parent.Name}) != ""
			found[isNext] = append(found[isNext], strconv.Quote(strings.TrimPrefix(pathOf(leaf), "providerd ")))
		}
	}
	return strings.Join(found[len(found[true]) > 0], " or ")
}

// meantCommand returns what to write instead of an unexpected argument. The parser would suggest copy for nope.
func meantCommand(command *kong.Node, argument, next string, before []string) string {
	var names []string
	for _, child := range command.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	split := regexp.MustCompile(`--(name|as|by|created-by)[=\n][^\n]+$`).FindStringSubmatch(strings.Join(before, "\n"))
	similar, called := contract.MostSimilar(argument, names), commandsCalled(argument, next, command)
	switch {
	case regexp.MustCompile(`^provider (un)?link$`).MatchString(command.Name + " " + argument):
		return fmt.Sprintf(`; use "providerd application %s"`, argument)
	case regexp.MustCompile(`^token (show|get|view|describe)$`).MatchString(command.Name + " " + argument):
		return "; " + printedOnce
	case called != "":
		return "; did you mean " + called + "?"
	case similar != "":
		return fmt.Sprintf("; did you mean %q?", similar)
	case len(names) > 0:
		return "; the commands are " + strings.Join(names, ", ")
	case split != nil && new(console.ProviderKind).UnmarshalText([]byte(argument)) != nil:
		return fmt.Sprintf("; quote a value with spaces, as in --%s='A B'", split[1])
	case command.Name == "apply":
		return "; pass files with --file"
	default:
		return meantArgument(command, argument)
	}
}

// meantArgument returns which flag takes an argument, or selects what a command prints, or the usage of the command.
func meantArgument(command *kong.Node, argument string) string {
	var flags []string
	for _, flag := range command.Flags {
		switch {
		case flag.Name == "kind" && new(console.ProviderKind).UnmarshalText([]byte(argument)) == nil:
			return "; use --kind " + argument
		case flag.Name == "name" && flag.Required:
			return "; write --name " + argument
		case slices.Contains([]string{"pk", "name", "client-id"}, flag.Name):
			flags = append(flags, flag.Summary())
		}
	}
	usage := "; the usage is: " + usageOf(command)
	switch count := len(command.Positional); {
	case count == 1:
		return "; pass one " + command.Positional[0].Name + " at a time" + usage
	case count == 0 && len(flags) > 0:
		return "; use " + strings.Join(flags, " or ")
	default:
		return usage
	}
}

const printedOnce = `a token is printed only once: "providerd token renew" prints a new one`

// meantFlag returns what to write instead of a flag that other programs have; "" if nothing is known.
func meantFlag(command *kong.Node, unknown string) string {
	for _, known := range []struct{ names, flag, example string }{
		{"port p host addr address bind", "listen", "127.0.0.1:8080"},
		{"format f json o", "output", console.FormatJSON},
		{"output o file f", "to", "providers.yaml"},
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
		{"offset page skip", "after", "17, with the last pk or id of the previous page"},
		{"type", "kind", "oauth2"},
		{"force f y", "yes", ""},
		{"force f overwrite", "replace", ""},
		{"secrets show-secrets", "reveal", ""},
		{"config c config-file", "", "there is no configuration file; use flags or PROVIDERD_* variables (see --help)"},
		{"reveal", "", "it prints secrets of providers; " + printedOnce},
		{"sort", "", "lists are ordered by pk, id or slug"},
		{"event action", "", `write: providerd audit list --output jsonl | jq 'select(.event == "token created")'`},
	} {
		if !slices.Contains(strings.Fields(known.names), unknown) {
			continue
		}
		if known.flag == "" {
			return "; " + known.example
		}
		for _, flag := range slices.Concat(command.AllFlags(false)...) {
			// A flag without an enumeration takes no format.
			accepts := flag.Enum == "" && known.example != console.FormatJSON ||
				slices.Contains(strings.Split(flag.Enum, ","), known.example)
			if flag.Name == known.flag && accepts {
				return strings.TrimSuffix("; use --"+known.flag+" "+known.example, " ")
			}
		}
	}
	return ""
}

// flagElsewhere returns some of the other commands that have a flag, those of the same group first, and what it takes.
func flagElsewhere(program, command *kong.Node, unknown string) (text string) {
	const maxNamed = 3
	found := map[bool][]string{}
	for _, other := range program.Leaves(true) {
		isFlag := func(flag *kong.Flag) bool { return flag.Name == unknown || string(flag.Short) == unknown }
		if slices.ContainsFunc(other.Flags, isFlag) {
			isNext := other.Parent == command.Parent
			found[isNext] = append(found[isNext], strings.TrimPrefix(pathOf(other), "providerd "))
		}
	}
	if owners := slices.Concat(found[true], found[false]); len(owners) > 0 {
		text = "; it is a flag of " + strings.Join(owners[:min(len(owners), maxNamed)], ", ")
	}
	if len(command.Positional) > 0 {
		text += "; the usage is: " + usageOf(command)
		if list := regexp.MustCompile(`, from ("[^"]+")`).FindStringSubmatch(command.Positional[0].Help); list != nil {
			text += "; " + list[1] + " shows each " + command.Positional[0].Name
		}
	}
	if strings.Contains(text, "<item>") {
		text += "; write fields without hyphens, as name=Wiki"
	}
	return text
}

func sourceOf(variable string) string { return " (from the environment variable " + variable + ")" }
