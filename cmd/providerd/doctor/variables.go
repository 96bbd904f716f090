package doctor

import (
	"iter"
	"os"
	"slices"
	"strings"

	"example.com/providerd/server/contract"
)

const variablePrefix = "PROVIDERD_"

// UnknownVariables returns the variables of the environment that begin like those of this program but are not among
// them, sorted, each with the known name that is most similar; "" if none is similar.
func UnknownVariables(known []string) iter.Seq2[string, string] {
	// The prefix would make any two names similar.
	suffixes := make([]string, len(known))
	for i, name := range known {
		suffixes[i] = strings.TrimPrefix(name, variablePrefix)
	}
	return func(yield func(name, similar string) bool) {
		for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
			name, _, _ := strings.Cut(variable, "=")
			suffix, isOurs := strings.CutPrefix(name, variablePrefix)
			if !isOurs || slices.Contains(known, name) {
				continue
			}
			similar := contract.MostSimilar(suffix, suffixes)
			if similar != "" {
				similar = variablePrefix + similar
			}
			if !yield(name, similar) {
				return
			}
		}
	}
}
