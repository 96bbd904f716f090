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

// mistypedVariables describes the variables of the environment that are not known but similar to one that is. It
// ignores others, because Kubernetes sets such variables for a Service named providerd.
func mistypedVariables(parser *kong.Kong) []string {
	var mistyped []string
	for name, similar := range doctor.UnknownVariables(knownVariables(parser)) {
		if similar != "" {
			mistyped = append(mistyped, fmt.Sprintf("%s is set, but providerd has no such variable; did you mean %s?",
				console.Printable(name), similar))
		}
	}
	return mistyped
}
