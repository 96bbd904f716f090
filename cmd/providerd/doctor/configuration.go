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

// checkConfiguration reads the environment as "serve" would, with the flags that were given to the doctor.
func (c *Command) checkConfiguration(configuration Configuration) []finding {
	var found []finding
	if misuse := configuration.Check(c.serveLine()); misuse != "" {
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

// serveLine is how the server would be started. What comes from the environment is left to it: a password must not be
// in an argument.
func (c *Command) serveLine() []string {
	line := []string{"serve"}
	for _, flag := range []struct{ name, variable, value string }{
		{"--database", "PROVIDERD_DATABASE", c.Database.Text},
		{"--keyset", "PROVIDERD_KEYSET", c.Keyset.path},
		{"--tls-cert", "PROVIDERD_TLS_CERT", c.TLSCert.path},
		{"--tls-key", "PROVIDERD_TLS_KEY", c.TLSKey.path},
	} {
		if flag.value != "" && flag.value != os.Getenv(flag.variable) {
			line = append(line, flag.name+"="+flag.value)
		}
	}
	return line
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
