package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// LookUp finds the value of a variable, as os.LookupEnv does.
type LookUp func(name string) (value string, ok bool)

// referencePattern matches a reference to a variable of the environment (POSIX.1-2017 Base Definitions section 8.1).
const referencePattern = `\$\{[A-Za-z_][A-Za-z0-9_]*\}`

// isReference tells whether a text is one reference and nothing else.
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
			return "", errors.New("has ${ without a name of a variable and }, as in ${NAME}; $${ stands for ${ itself")
		}
		value, ok := lookUp(name)
		switch {
		case !ok:
			return "", fmt.Errorf("refers to %s, which is not set in the environment", name)
		case value == "":
			return "", fmt.Errorf("refers to %s, which is empty in the environment; write '' where nothing is meant", name)
		case !utf8.ValidString(value):
			return "", fmt.Errorf("refers to %s, which is not UTF-8 in the environment", name)
		}
		result.WriteString(before + value)
		text = rest
	}
}
