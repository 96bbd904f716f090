package command

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/providerd/cmd/providerd/apply"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
)

// invalidVariables describes the environment variables that the flags of a command do not accept.
func invalidVariables(command *kong.Node) (problems []string) {
	if command == nil {
		return nil
	}
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		if len(flag.Envs) == 0 {
			continue
		}
		value, isSet := os.LookupEnv(flag.Envs[0])
		target := reflect.New(flag.Target.Type()).Elem()
		err := flag.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value}), target)
		if isSet && err != nil {
			err = fmt.Errorf("%w (from envar %s=%q)", err, flag.Envs[0], value)
			problems = append(problems, describeUsageError(err))
		}
	}
	return problems
}

// unknownVariables returns a warning for each variable of the environment that begins with PROVIDERD_ and that no
// command reads, except those that Kubernetes sets for a Service.
func unknownVariables(parser *kong.Kong) (warnings []string) {
	const prefix = "PROVIDERD_"
	// With the prefix, even short names would be similar.
	known := []string{strings.TrimPrefix(apply.TokenVariable, prefix)}
	for _, command := range parser.Model.Leaves(false) {
		for _, flag := range command.Flags {
			known = append(known, strings.TrimPrefix(strings.Join(flag.Envs, ""), prefix))
		}
	}
	for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
		variable, isOurs := strings.CutPrefix(variable, prefix)
		name, value, _ := strings.Cut(variable, "=")
		if !isOurs || slices.Contains(known, name) || isOfService(name, value) {
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

// isOfService reports whether a variable is one of those that Kubernetes sets for a Service, such as
// PROVIDERD_SERVICE_HOST, PROVIDERD_PORT=tcp://10.0.0.1:80 and PROVIDERD_PORT_80_TCP_ADDR.
func isOfService(name, value string) bool {
	name = "_" + name
	protocol, _, _ := strings.Cut(value, "://")
	isPort := strings.Contains(name, "_PORT") && slices.Contains([]string{"tcp", "udp", "sctp"}, protocol)
	isPartOfPort := strings.Contains(name, "_PORT_") &&
		(strings.Contains(name, "_TCP_") || strings.Contains(name, "_UDP_") || strings.Contains(name, "_SCTP_"))
	return strings.HasSuffix(name, "_SERVICE_HOST") || strings.Contains(name, "_SERVICE_PORT") || isPort || isPartOfPort
}
