package command

import (
	"fmt"
	"iter"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
)

// invalidVariables describes the environment variables that flags of a command, or of any if it is nil, do not accept.
func invalidVariables(parser *kong.Kong, command *kong.Node) []string {
	var problems []string
	for flag := range flagsWithVariables(parser) {
		value, isSet := os.LookupEnv(flag.Envs[0])
		if !isSet || command != nil && !slices.Contains(slices.Concat(command.AllFlags(false)...), flag) {
			continue
		}
		target := reflect.New(flag.Target.Type()).Elem()
		err := flag.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value}), target)
		if err == nil {
			continue
		}
		problem := describeUsageError(fmt.Errorf("%w (from envar %s=%q)", err, flag.Envs[0], value))
		if !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	return problems
}

// flagsWithVariables returns the flags of all commands that can be set by an environment variable.
func flagsWithVariables(parser *kong.Kong) iter.Seq[*kong.Flag] {
	return func(yield func(*kong.Flag) bool) {
		for _, command := range parser.Model.Leaves(false) {
			for _, flag := range slices.Concat(command.AllFlags(false)...) {
				if len(flag.Envs) > 0 && !yield(flag) {
					return
				}
			}
		}
	}
}

// unknownVariables returns a warning for each variable of the environment that begins with PROVIDERD_ and that no
// command reads, except those that Kubernetes sets for a Service.
func unknownVariables(parser *kong.Kong) (warnings []string) {
	const prefix = "PROVIDERD_"
	// With the prefix, even short names would be similar.
	known := []string{strings.TrimPrefix(apply.TokenVariable, prefix)}
	for flag := range flagsWithVariables(parser) {
		known = append(known, strings.TrimPrefix(flag.Envs[0], prefix))
	}
	service := regexp.MustCompile(`^(\w+_)?(SERVICE_HOST=|SERVICE_PORT(_\w+)?=|PORT(_\d+_(TCP|UDP|SCTP))?=` +
		`(tcp|udp|sctp)://|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=)`)
	for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
		variable, isOurs := strings.CutPrefix(variable, prefix)
		name, _, _ := strings.Cut(variable, "=")
		if !isOurs || slices.Contains(known, name) || service.MatchString(variable) {
			continue
		}
		remedy := `"providerd serve --help" lists the variables`
		meant := contract.MostSimilar(name, known)
		for variable, others := range map[string]string{
			"DATABASE": "DATABASE_URL DB DB_URL DSN URL", "LISTEN": "PORT ADDR ADDRESS HOST", "TOKEN": "API_TOKEN",
		} {
			if slices.Contains(strings.Fields(others), name) {
				meant = variable
			}
		}
		if meant != "" {
			remedy = "did you mean " + prefix + meant + "?"
		}
		warnings = append(warnings, fmt.Sprintf("%s%s is set, but providerd has no such variable; %s", prefix,
			console.Printable(name), remedy))
	}
	return warnings
}
