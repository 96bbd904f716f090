package doctor

import (
	"os"
	"slices"
	"strings"

	"example.com/providerd/cmd/providerd/tracing"
	"example.com/providerd/server/contract"
)

const checkOfConfiguration = "configuration"

// Configuration is how "providerd serve" reads its flags and the environment.
type Configuration struct {
	// Check returns what is wrong with the arguments of "serve" or with the environment.
	Check func(arguments []string) []string
	// Variables are the environment variables that the program reads.
	Variables []string
}

// checkConfiguration reads the environment, and arguments of "serve", as "serve" would.
func checkConfiguration(configuration Configuration, arguments []string) []finding {
	var found []finding
	for _, problem := range configuration.Check(arguments) {
		found = append(found, failed(checkOfConfiguration, "correct the variable or flag", "%s", problem))
	}
	for _, name := range unknownVariables(configuration.Variables) {
		remedy := `"providerd serve --help" lists the variables`
		if similar := contract.MostSimilar(name, configuration.Variables); similar != "" {
			remedy = "did you mean " + similar + "?"
		}
		found = append(found, warned(checkOfConfiguration, remedy, "%s is set, but providerd has no such variable", name))
	}
	if _, err := tracing.Endpoint(); err != nil {
		what, remedy, _ := strings.Cut(err.Error(), "; ")
		found = append(found, warned(checkOfConfiguration, remedy, "traces are not exported: %s", what))
	}
	if len(found) == 0 {
		found = append(found, passed(checkOfConfiguration, "flags and environment variables are valid"))
	}
	return found
}

// unknownVariables returns the variables of the environment that look like this program's but are not.
func unknownVariables(known []string) []string {
	var unknown []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "PROVIDERD_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
