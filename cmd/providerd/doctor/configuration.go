package doctor

import (
	"cmp"
	"strings"

	"example.com/providerd/cmd/providerd/tracing"
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
	for problem, remedy := range UnknownVariables(configuration.Variables) {
		remedy = cmp.Or(remedy, `"providerd serve --help" lists the variables`)
		found = append(found, warned(checkOfConfiguration, remedy, "%s", problem))
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
