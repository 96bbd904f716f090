package doctor

import (
	"os"
	"slices"
	"strings"

	"example.com/providerd/cmd/providerd/tracing"
)

const checkOfConfiguration = "configuration"

// Configuration is what "providerd serve" makes of its flags and of the environment.
type Configuration struct {
	// Check says what is wrong with the arguments of "serve", or with the environment; "" where nothing is.
	Check func(arguments []string) string
	// Variables are those of the environment that the program reads.
	Variables []string
}

// checkConfiguration reads the environment as "serve" would, and these arguments of it.
func checkConfiguration(configuration Configuration, arguments []string) []finding {
	var found []finding
	if misuse := configuration.Check(arguments); misuse != "" {
		found = append(found, failed(checkOfConfiguration, "set the variable or the flag right", "%s", misuse))
	}
	for _, name := range unknownVariables(configuration.Variables) {
		found = append(found, warned(checkOfConfiguration, `"providerd serve --help" names those that there are`,
			"%s is set, and no variable of this program", name))
	}
	if _, err := tracing.Endpoint(); err != nil {
		what, remedy, _ := strings.Cut(err.Error(), "; ")
		found = append(found, warned(checkOfConfiguration, remedy, "no traces are exported: %s", what))
	}
	if len(found) == 0 {
		found = append(found, passed(checkOfConfiguration, "the environment is one that the server takes"))
	}
	return found
}

// unknownVariables names those of the environment that look like this program's, and are not.
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
