package command

import (
	"fmt"
	"iter"
	"os"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/doctor"
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

// knownVariables returns the environment variables that the program reads.
func knownVariables(parser *kong.Kong) []string {
	known := []string{apply.TokenVariable}
	for flag := range flagsWithVariables(parser) {
		known = append(known, flag.Envs...)
	}
	return known
}

// variableWarnings returns a warning for each variable of the environment that is unknown but similar to a known one.
// Other unknown variables get none, because Kubernetes sets such variables for a Service named providerd.
func variableWarnings(parser *kong.Kong) []string {
	var warnings []string
	for problem, remedy := range doctor.UnknownVariables(knownVariables(parser)) {
		if remedy != "" {
			warnings = append(warnings, console.Printable(problem)+"; "+remedy)
		}
	}
	return warnings
}
