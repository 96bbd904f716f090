package command

import (
	"cmp"
	"fmt"
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

// invalidVariables describes the environment variables that the flags of a command do not accept.
func invalidVariables(command *kong.Node) (problems []string) {
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		value, isSet := os.LookupEnv(strings.Join(flag.Envs, ""))
		if !isSet {
			continue
		}
		target := reflect.New(flag.Target.Type()).Elem()
		if err := flag.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value}), target); err != nil {
			problems = append(problems, describeUsageError(fmt.Errorf("%w (from envar %s=%q)", err, flag.Envs[0], value)))
		}
	}
	return problems
}

func variables(parser *kong.Kong) []string {
	names := []string{apply.TokenVariable}
	for _, command := range parser.Model.Leaves(false) {
		for _, flag := range command.Flags {
			names = append(names, flag.Envs...)
		}
	}
	return names
}

// trimVariables removes white space around values, which some env files keep, and empty variables, which Compose sets.
func trimVariables(parser *kong.Kong) error {
	for _, name := range variables(parser) {
		value := strings.TrimSpace(os.Getenv(name))
		err := os.Setenv(name, value)
		if value == "" {
			err = os.Unsetenv(name)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

// unknownVariables returns a warning for each variable of the environment that begins with PROVIDERD_ and that no
// command reads, except those that Kubernetes sets for a Service.
func unknownVariables(parser *kong.Kong) (warnings []string) {
	const prefix = "PROVIDERD_"
	known := variables(parser)
	for i := range known {
		// With the prefix, even short names would be similar.
		known[i] = strings.TrimPrefix(known[i], prefix)
	}
	// Kubernetes sets such as PROVIDERD_SERVICE_HOST, PROVIDERD_PORT=tcp://10.0.0.1:80 and PROVIDERD_PORT_80_TCP_ADDR.
	ofService := regexp.MustCompile(
		`^(\w*_)?(SERVICE_HOST=|SERVICE_PORT\w*=|PORT_\d+_(TCP|UDP|SCTP)\w*=|PORT=(tcp|udp|sctp)://)`)
	for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
		variable, isOurs := strings.CutPrefix(variable, prefix)
		name, _, _ := strings.Cut(variable, "=")
		if !isOurs || slices.Contains(known, name) || ofService.MatchString(variable) {
			continue
		}
		meant := map[string]string{"DATABASE_URL": "DATABASE", "DB": "DATABASE", "PORT": "LISTEN", "ADDR": "LISTEN"}[name]
		remedy := `"providerd serve --help" lists the variables`
		if meant = cmp.Or(meant, contract.MostSimilar(name, known)); meant != "" {
			remedy = "did you mean " + prefix + meant + "?"
		}
		warnings = append(warnings, fmt.Sprintf("%s%s is set, but providerd has no such variable; %s", prefix,
			console.Printable(name), remedy))
	}
	return warnings
}
