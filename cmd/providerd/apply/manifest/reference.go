package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// LookUp returns the value of a variable, like os.LookupEnv.
type LookUp func(name string) (value string, ok bool)

// referencePattern matches a reference to an environment variable (POSIX.1-2017, Base Definitions, section 8.1).
const referencePattern = `\$\{[A-Za-z_][A-Za-z0-9_]*\}`

// isReference reports whether a text is exactly one reference.
func isReference(text string) bool {
	return regexp.MustCompile(`^` + referencePattern + `$`).MatchString(text)
}

// expand replaces the references in a text.
func expand(text string, lookUp LookUp) (string, error) {
	var result strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			return result.String() + text, nil
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			result.WriteString(escaped + "${")
			text = after
			continue
		}
		name, rest, _ := strings.Cut(after, "}")
		if !isReference(text[len(before) : len(text)-len(rest)]) {
			return "", errors.New("contains ${ that is not part of a reference such as ${NAME}; write $${ for ${ itself")
		}
		value, ok := lookUp(name)
		switch {
		case !ok:
			return "", fmt.Errorf("refers to the variable %s, which is not set", name)
		case value == "":
			return "", fmt.Errorf("refers to the variable %s, which is empty; write '' for an empty value", name)
		case !utf8.ValidString(value):
			return "", fmt.Errorf("refers to the variable %s, which is not UTF-8", name)
		}
		result.WriteString(before + value)
		text = rest
	}
}
